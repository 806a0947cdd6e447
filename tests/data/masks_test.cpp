// The encoder's masks against those of the published collator and label drop, exactly (golden/loss).
#include "elf/data/masks.h"

#include "elf/base/error.h"
#include "support/golden.h"

namespace elf {
namespace {

TEST(EncoderMask, EqualsTheCollatorsInEveryCase) {
  const auto cases = test::golden_json("loss/loss.json");
  for (const auto& [name, description] : cases.items()) {
    const TensorMap in = read_safetensors(test::golden("loss/" + name + ".safetensors"));
    const at::Tensor valid = in.at("in/attention_mask").to(at::kBool);
    const at::Tensor cond = in.at("in/cond_mask").to(at::kBool);
    const at::Tensor plain = in.at("in/encoder_attention_mask").to(at::kBool);
    const at::Tensor used = in.at("in/encoder_attention_mask_used").to(at::kBool);
    EXPECT_TRUE(at::equal(encoder_mask(valid, cond), plain)) << name;
    EXPECT_TRUE(at::equal(encoder_mask(valid, cond, in.at("in/label_drop").to(at::kBool)), used)) << name;
  }
}

TEST(EncoderMask, ShowsTheTargetNothingOfADroppedCondition) {
  const at::Tensor valid = at::tensor({1, 1, 1, 0}).to(at::kBool).unsqueeze(0);
  const at::Tensor cond = at::tensor({1, 0, 0, 0}).to(at::kBool).unsqueeze(0);
  const at::Tensor drop = at::ones({1}, at::kBool);
  const at::Tensor expected = at::tensor({1, 0, 0, 0, /**/ 0, 1, 1, 0, /**/ 0, 1, 1, 0, /**/ 0, 1, 1, 0})
                                  .to(at::kBool)
                                  .view({1, 4, 4});
  EXPECT_TRUE(at::equal(encoder_mask(valid, cond, drop), expected));
}

TEST(EncoderMask, RefusesShapesThatDoNotFit) {
  const at::Tensor mask = at::ones({2, 3}, at::kBool);
  EXPECT_THROW(encoder_mask(mask, at::ones({2, 4}, at::kBool)), Error);
  EXPECT_THROW(encoder_mask(mask, mask, at::ones({3}, at::kBool)), Error);
}

}  // namespace
}  // namespace elf
