#include "elf/sample/replayed_denoiser.h"

namespace elf {

ReplayedDenoiser::ReplayedDenoiser(Denoiser& network, const SamplingConfig& config,
                                   std::unique_ptr<Recorder> recorder)
    : network_(network),
      replayed_(
          [&network](const std::vector<at::Tensor>& x) {
            return network.x_hat(
                {.z = x[0], .self_cond = x[1], .t = x[2], .w = x[3], .mode = x[4], .key_mask = x[5]});
          },
          config.cuda_graph ? std::move(recorder) : nullptr) {}

at::Tensor ReplayedDenoiser::x_hat(const DenoiserInput& input) {
  if (input.dropout) return network_.x_hat(input);
  return replayed_({input.z, input.self_cond, input.t, input.w, input.mode, input.key_mask});
}

}  // namespace elf
