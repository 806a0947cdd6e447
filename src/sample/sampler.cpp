#include "elf/sample/sampler.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>

#include "elf/flow/times.h"
#include "elf/tensor/device.h"
#include "elf/tensor/random.h"
#include "samplers.h"

namespace elf {
namespace {

const Sampler& sampler_of(const SamplingConfig& config) {
  return *std::find_if(std::begin(kSamplers), std::end(kSamplers),
                       [&](const Sampler& sampler) { return sampler.kind == config.sampler; });
}

}  // namespace

int64_t network_calls(const SamplingConfig& config) {
  return sampler_of(config).predictions * (config.steps - 1) + 1;
}

SamplerDraws draw_sampler(const SamplingConfig& config, const std::vector<int64_t>& samples, int64_t length,
                          int64_t latent_dim, at::Device device) {
  const auto draw = [=, seed = config.seed](Purpose purpose, int64_t step) {
    return upload(normal({seed, purpose, static_cast<uint64_t>(step)}, samples, {length, latent_dim}),
                  device);
  };
  return {draw_time_grid(config), draw(Purpose::kSampleNoise, 0),
          [draw](int64_t step) { return draw(Purpose::kSampleStep, step); }};
}

LatentSamples sample_latents(const SamplerModel& model, const SamplingConfig& config,
                             const SamplerDraws& draws, const SampleConditions& conditions,
                             const StepObserver& observer) {
  at::NoGradGuard no_grad;
  SamplerWalk walk(model, config, draws, conditions);
  const SamplerStepFunction step = sampler_of(config).step;
  SamplerState state = walk.start();
  for (int64_t k = 0; k < walk.steps(); ++k) {
    const bool last = k + 1 == walk.steps();
    (last ? step_ode : step)(walk, state, k);
    state.z = walk.pin(state.z);
    if (observer) observer({k, walk.time(k + 1), state.z, state.x_hat});
    if (conditions.known.refresh && !last) walk.know(conditions.known.refresh(state.x_hat));
  }
  return {state.z, walk.forwards(), walk.rows()};
}

}  // namespace elf
