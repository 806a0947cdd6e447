// Decoding: chunks against all at once, and the cutting rules against golden/sampler.
#include "elf/sample/decode.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "elf/tensor/random.h"
#include "support/golden.h"

namespace elf {
namespace {

// Logits = latents times a table: the likeliest token is known by one product. Notes what it was given.
class TableDenoiser : public Denoiser {
 public:
  explicit TableDenoiser(at::Tensor table) : table_(std::move(table)) {}
  at::Tensor features(const DenoiserInput& input) override {
    last = input;
    return input.z;
  }
  at::Tensor denoise_head(const at::Tensor& features) override { return features; }
  at::Tensor decode_head(const at::Tensor& features) override {
    most_rows = std::max(most_rows, features.size(0));
    return at::matmul(features, table_);
  }

  DenoiserInput last;
  int64_t most_rows = 0;

 private:
  at::Tensor table_;  // [D, V]
};

TEST(Decode, ChunksOfALargeVocabularyGiveTheSameIds) {
  constexpr int64_t kVocabulary = 1 << 20;  // 16 positions at once
  const at::Tensor table = normal({1, Purpose::kTable}, {0}, {3, kVocabulary}).squeeze(0);
  TableDenoiser network(table);
  const SamplerModel model{network, {true, true, false}, 2.0, 0.05};
  const at::Tensor latents = normal({2, Purpose::kNoise}, sample_range(0, 5), {7, 3});
  const at::Tensor ids = decode_ids(model, latents, 3.0);
  EXPECT_EQ(network.most_rows, 16);
  EXPECT_TRUE(at::equal(ids, at::matmul(latents, table).argmax(-1)));
}

TEST(Decode, GivesTheNetworkWhatThePublishedCodeGives) {
  TableDenoiser network(at::eye(3));
  const at::Tensor latents = at::ones({2, 4, 3});
  decode_ids({network, {true, true, false}, 2.0, 0.05}, latents, 3.0);
  EXPECT_TRUE(at::equal(network.last.t, at::ones({2})));
  EXPECT_TRUE(at::equal(network.last.mode, at::ones({2})));
  EXPECT_TRUE(at::equal(network.last.w, at::full({2}, 3.0)));
  EXPECT_TRUE(at::equal(network.last.self_cond, at::zeros({2, 4, 3})));
  decode_ids({network, {false, false, false}, 2.0, 0.05}, latents, 3.0);
  EXPECT_FALSE(network.last.w.defined());
  EXPECT_FALSE(network.last.self_cond.defined());
}

TEST(Decode, CertaintyAndScoresAreThoseOfTheSoftmax) {  // 1e-5
  const at::Tensor table = normal({1, Purpose::kTable}, {0}, {3, 50}).squeeze(0);
  TableDenoiser network(table);
  const SamplerModel model{network, {true, true, false}, 2.0, 0.05};
  const at::Tensor latents = normal({2, Purpose::kNoise}, {0, 1}, {7, 3});
  const at::Tensor wanted = at::arange(14).view({2, 7});
  const Decoded decoded = decode(model, latents, {.w = 3.0, .certainty = true, .score = wanted});
  const at::Tensor p = at::softmax(at::matmul(latents, table), -1);
  EXPECT_TRUE(test::all_close(decoded.confidence, std::get<0>(p.max(-1)), 1e-5, 1e-6));
  EXPECT_TRUE(test::all_close(decoded.entropy, -(p * p.log()).sum(-1), 1e-5, 1e-5));
  EXPECT_TRUE(
      test::all_close(decoded.log_prob, p.gather(-1, wanted.unsqueeze(-1)).squeeze(-1).log(), 1e-5, 1e-5));
  EXPECT_FALSE(decode(model, latents, {.w = 3.0}).confidence.defined());
}

TEST(Decode, BannedTokensStandNowhereInTheirPlaces) {
  TableDenoiser network(at::eye(4));
  const SamplerModel model{network, {false, false, false}, 2.0, 0.05};
  const at::Tensor latents = at::tensor({3.0f, 2.0f, 1.0f, 0.0f}).expand({1, 2, 4}).contiguous();
  DecodeRequest request{.banned = {0, 1, 99, -5},
                        .certainty = true};  // ids outside the network's are no matter
  request.banned_at = at::tensor({0, 1}).to(at::kBool).view({1, 2});
  const Decoded decoded = decode(model, latents, request);
  EXPECT_EQ(decoded.ids[0][0].item<int64_t>(), 0);
  EXPECT_EQ(decoded.ids[0][1].item<int64_t>(), 2);
  EXPECT_NEAR(decoded.confidence[0][1].item<double>(), 1.0 / (1.0 + std::exp(-1.0)), 1e-6);
  EXPECT_TRUE(at::isfinite(decoded.entropy).all().item<bool>());
}

at::Tensor ids_of(const nlohmann::json& rows) {
  std::vector<at::Tensor> tensors;
  for (const auto& row : rows)
    tensors.push_back(at::tensor(at::ArrayRef<int64_t>(row.get<std::vector<int64_t>>()), at::kLong));
  return at::stack(tensors);
}

TEST(Decode, ShiftsAndCutsAsGolden) {
  const nlohmann::json description = test::golden_json("sampler/sampler.json");
  int cases = 0;
  for (const auto& c : description.at("cut_at_eos")) {
    const at::Tensor shifted = target_part(ids_of(c.at("ids")), c.at("shift"), c.at("keep"));
    EXPECT_TRUE(at::equal(shifted, ids_of(c.at("shifted"))));
    std::vector<std::vector<int64_t>> lists = cut_at_eos(shifted, c.at("eos"));
    for (size_t b = 0; b < lists.size(); ++b) {
      lists[b].resize(c.at("keep"), c.at("pad"));  // the published code pads from the first end on
      EXPECT_EQ(lists[b], c.at("masked")[b].get<std::vector<int64_t>>());
    }
    ++cases;
  }
  EXPECT_GE(cases, 3);
}

}  // namespace
}  // namespace elf
