#include "corruption.h"

#include "elf/flow/conditioning.h"
#include "elf/flow/interpolant.h"

namespace elf {

at::Tensor corrupted_latents(const at::Tensor& x, const at::Tensor& cond_mask, const StepDraws& draws,
                             const FlowConfig& config) {
  const at::Tensor corrupted =
      mix_noise(x, corruption_level(draws.p_normal, config), draws.decoder_eps, config.decoder_noise_scale);
  return config.decode_condition == DecodeCondition::kClean ? pin_condition(corrupted, x, cond_mask)
                                                            : corrupted;
}

}  // namespace elf
