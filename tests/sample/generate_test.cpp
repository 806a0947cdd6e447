// From conditions to ids with a network and a latent source whose answers are known.
#include "elf/sample/generate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "elf/base/error.h"
#include "elf/tensor/random.h"
#include "support/golden.h"

namespace elf {
namespace {

constexpr int64_t kVocabulary = 6, kLength = 8, kMaxInput = 3;

// Latents are one-hot rows.
class OneHotCodec : public LatentCodec {
 public:
  at::Tensor encode(const at::Tensor& ids, const at::Tensor& mask) override {
    last_mask = mask;
    return at::one_hot(ids, kVocabulary).to(at::kFloat);
  }
  int64_t dim() const override { return kVocabulary; }
  int64_t vocabulary() const override { return kVocabulary; }
  std::string digest() const override { return "one-hot"; }

  at::Tensor last_mask;
};

// Copies: predicts at every position the token that stands one period before, the period being the number of
// positions whose state is exactly one-hot (the condition). Without a condition it predicts the sign pattern
// of its input.
class CopyingDenoiser : public Denoiser {
 public:
  at::Tensor features(const DenoiserInput& input) override {
    if (input.mode.defined()) return input.z;
    at::Tensor x = at::one_hot(input.z.argmax(-1), kVocabulary).to(at::kFloat);
    const at::Tensor known = input.z.eq(x).all(-1);
    for (int64_t b = 0; b < x.size(0); ++b) {
      const int64_t period = known[b].sum().item<int64_t>();
      for (int64_t i = period; period > 0 && i < x.size(1); ++i) x[b][i] = x[b][i - period];
    }
    return x;
  }
  at::Tensor denoise_head(const at::Tensor& features) override { return features; }
  at::Tensor decode_head(const at::Tensor& features) override { return features; }
};

class GeneratorTest : public ::testing::Test {
 protected:
  Generator make(int64_t max_input) {
    SamplingConfig config;
    config.sampler = SamplerKind::kOde;
    config.steps = 4;
    config.time_schedule = TimeGrid::kUniform;
    return Generator({network, {false, false, false}, 2.0, 0.05}, max_input ? &codec : nullptr,
                     {kLength, kVocabulary, max_input, 0, 1}, config);
  }

  OneHotCodec codec;
  CopyingDenoiser network;
};

TEST_F(GeneratorTest, KeepsTheTargetBehindEachCondition) {
  Generator generator = make(kMaxInput);
  const std::vector<TokenIds> ids = generator.generate({0, 1}, {{3, 5, 2}, {4}});
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_EQ(ids[0], (TokenIds{3, 5, 2, 3, 5}));
  EXPECT_EQ(ids[1], (TokenIds{4, 4, 4, 4, 4}));
  EXPECT_EQ(generator.forwards(), 5);
  EXPECT_EQ(generator.rows(), 10);
  // The encoder shows the condition to the condition only.
  EXPECT_TRUE(codec.last_mask[0][2][1].item<bool>());
  EXPECT_FALSE(codec.last_mask[1][0][2].item<bool>());
  // No longer than the longest condition.
  EXPECT_EQ(codec.last_mask.size(1), 3);
}

TEST_F(GeneratorTest, CutsBeforeTheFirstEos) {
  EXPECT_EQ(make(kMaxInput).generate({0}, {{2, 1, 3}})[0], (TokenIds{2}));
  EXPECT_TRUE(make(kMaxInput).generate({0}, {{1}})[0].empty());
}

TEST_F(GeneratorTest, EmptyConditionsAndOrderStay) {
  const std::vector<TokenIds> together = make(kMaxInput).generate({7, 8, 9}, {{}, {2, 3}, {}});
  EXPECT_EQ(together[1], (TokenIds{2, 3, 2, 3, 2}));
  EXPECT_EQ(make(kMaxInput).generate({7}, {{}})[0], together[0]);
  EXPECT_EQ(make(kMaxInput).generate({9}, {{}})[0], together[2]);
}

TEST_F(GeneratorTest, UnconditionalSamplesFollowTheirIndex) {
  const std::vector<TokenIds> four = make(0).generate({0, 1, 2, 3});
  EXPECT_EQ(make(0).generate({2})[0], four[2]);
  for (const TokenIds& ids : four) EXPECT_LE(ids.size(), static_cast<size_t>(kLength));
  EXPECT_FALSE(four[0] == four[1] && four[1] == four[2]);
  EXPECT_TRUE(make(0).generate({}).empty());
}

TEST_F(GeneratorTest, ObserverSeesEveryStepAndTheResultLast) {
  std::vector<GeneratorStep> steps;
  const auto ids = make(kMaxInput).generate({0, 1}, {{3, 5, 2}, {4}},
                                            [&](const GeneratorStep& step) { steps.push_back(step); });
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps.front().t, 0.25);
  EXPECT_EQ(steps.back().index, 3);
  EXPECT_EQ(steps.back().t, 1.0);
  EXPECT_EQ(steps.back().ids, ids);
  // Five positions, none of them an end: the shares of one-hot logits.
  ASSERT_EQ(steps.back().confidence[0].size(), 5u);
  const double share = std::exp(1.0) / (std::exp(1.0) + 5.0);
  for (const float confidence : steps.back().confidence[0]) EXPECT_NEAR(confidence, share, 1e-5);
  EXPECT_NEAR(steps.back().entropy[1][0],
              -share * std::log(share) - 5 * (1 - share) / 5 * std::log((1 - share) / 5), 1e-4);
}

TEST_F(GeneratorTest, StopsAtLatentsThatAreNotFinite) {
  class BrokenDenoiser : public CopyingDenoiser {
    at::Tensor denoise_head(const at::Tensor& features) override { return features / 0.0; }
  } broken;
  SamplingConfig config;
  config.steps = 2;
  Generator generator({broken, {false, false, false}, 2.0, 0.05}, nullptr, {kLength, kVocabulary, 0, 0, 1},
                      config);
  try {
    generator.generate({0});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kNumerical);
  }
}

TEST_F(GeneratorTest, RefusesWhatDoesNotFit) {
  EXPECT_THROW(make(kMaxInput).generate({0}, {{2, 2, 2, 2}}), Error);
  EXPECT_THROW(make(kMaxInput).generate({0, 1}, {{2}}), Error);
  EXPECT_THROW(make(0).generate({0}, {{2}}), Error);
  EXPECT_THROW(make(kLength), Error);
}

}  // namespace
}  // namespace elf
