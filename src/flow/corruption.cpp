#include "corruption.h"

#include "elf/flow/conditioning.h"
#include "elf/flow/interpolant.h"

namespace elf {

at::Tensor corrupted_latents(const at::Tensor& x, const at::Tensor& cond_mask, const StepDraws& draws,
                             const FlowConfig& config) {
  at::Tensor level = corruption_level(draws.p_normal, config);
  if (draws.decoder_mask.defined()) level = level.masked_fill(draws.decoder_mask, 0.0);
  const at::Tensor corrupted = mix_noise(x, level, draws.decoder_eps, config.decoder_noise_scale);
  return config.decode_condition == DecodeCondition::kClean ? pin_condition(corrupted, x, cond_mask)
                                                            : corrupted;
}

}  // namespace elf
