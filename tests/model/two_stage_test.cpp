// Two networks in the place of one: each is asked what it was trained for.
#include "elf/model/two_stage.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "elf/base/error.h"
#include "elf/tensor/random.h"
#include "support/tiny_networks.h"

namespace elf {
namespace {

DenoiserInput input_of(int64_t rows) {
  DenoiserInput input;
  input.z = normal({1, Purpose::kNoise}, sample_range(0, rows), {16, 32});
  input.self_cond = normal({2, Purpose::kNoise}, sample_range(0, rows), {16, 32});
  input.t = at::full({rows}, 0.5);
  input.w = at::full({rows}, 2.0);
  return input;
}

TEST(TwoStage, DenoiserDenoisesAndDecoderDecodes) {
  const at::NoGradGuard no_grad;
  const auto denoiser = test::tiny_network("full"), decoder = test::tiny_network("full");
  decoder->load(read_safetensors(test::golden("elf_tiny/ema.safetensors")));
  TwoStageDenoiser both(*denoiser, *decoder, /*decoder_self_cond=*/true);
  DenoiserInput input = input_of(2);
  EXPECT_TRUE(at::equal(both.x_hat(input), denoiser->x_hat(input)));
  EXPECT_FALSE(at::equal(both.x_hat(input), decoder->x_hat(input)));
  input.mode = at::ones({2});
  EXPECT_TRUE(at::equal(both.logits(input), decoder->logits(input)));
  EXPECT_FALSE(at::equal(both.logits(input), denoiser->logits(input)));
  for (const at::Tensor& mode : {at::zeros({2}), at::tensor({0.0f, 1.0f})}) {
    input.mode = mode;
    EXPECT_THROW(both.features(input), Error);
  }
}

TEST(TwoStage, ADecoderWithoutSelfConditioningIsGivenNoHalf) {
  const at::NoGradGuard no_grad;
  const auto denoiser = test::tiny_network("full"), decoder = test::tiny_network("full");
  TwoStageDenoiser both(*denoiser, *decoder, /*decoder_self_cond=*/false);
  DenoiserInput input = input_of(1);
  input.mode = at::ones({1});
  const at::Tensor logits = both.logits(input);
  input.self_cond = at::Tensor();
  EXPECT_TRUE(at::equal(logits, decoder->logits(input)));
}

}  // namespace
}  // namespace elf
