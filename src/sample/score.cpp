#include "elf/sample/score.h"

#include <ATen/ATen.h>

#include "elf/flow/conditioning.h"
#include "elf/flow/interpolant.h"
#include "elf/sample/decode.h"
#include "elf/tensor/random.h"

namespace elf {
namespace {

// Steps of the noise stream that no sampler reaches.
constexpr uint64_t kFirstStep = uint64_t{1} << 40;

}  // namespace

at::Tensor denoising_log_prob(const SamplerModel& model, const ScoreRequest& request) {
  at::NoGradGuard no_grad;
  const at::Tensor& x = request.latents;
  const at::Tensor empty = at::zeros_like(x);
  at::Tensor sum = at::zeros(x.sizes().slice(0, 2), x.options());
  for (size_t i = 0; i < request.times.size(); ++i) {
    const at::Tensor eps =
        normal({request.seed, Purpose::kSampleStep, kFirstStep + i}, request.samples, x.sizes().slice(1))
            .to(x.device());
    DenoiserInput input;
    input.t = at::full({x.size(0)}, request.times[i], x.options());
    input.z = pin_condition(mix_noise(x, input.t, eps, model.noise_scale), x, request.condition);
    if (model.traits.self_cond) input.self_cond = pin_condition(empty, x, request.condition);
    if (model.traits.cfg_tokens) input.w = at::full_like(input.t, request.w);
    const at::Tensor x_hat = pin_condition(model.network.x_hat(input), x, request.condition);
    sum += decode(model, x_hat, {.w = request.w, .score = request.ids}).log_prob;
  }
  return sum / static_cast<double>(request.times.size());
}

}  // namespace elf
