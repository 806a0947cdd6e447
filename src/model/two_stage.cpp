#include "elf/model/two_stage.h"

#include <ATen/ATen.h>

#include "elf/base/error.h"

namespace elf {

at::Tensor TwoStageDenoiser::features(const DenoiserInput& input) {
  if (!input.mode.defined()) return denoiser_.features(input);
  if (input.mode.is_cpu() && !input.mode.eq(1).all().item<bool>())
    usage_error("two networks: a batch is decoded, with mode 1 in every row, or denoised, without a mode");
  DenoiserInput decoded = input;
  if (!decoder_self_cond_) decoded.self_cond = at::Tensor();
  return decoder_.features(decoded);
}

}  // namespace elf
