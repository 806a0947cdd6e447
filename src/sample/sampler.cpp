#include "elf/sample/sampler.h"

#include <ATen/ATen.h>

#include "elf/base/error.h"
#include "elf/flow/conditioning.h"
#include "elf/flow/guidance.h"
#include "elf/flow/solver.h"
#include "elf/flow/times.h"
#include "elf/tensor/random.h"

namespace elf {
namespace {

void check(const SamplerDraws& draws, const SampleConditions& conditions) {
  if (draws.times.size() < 2)
    usage_error("sampler: ", draws.times.size(), " times, expected at least 2 (one step)");
  if (draws.eps0.dim() != 3)
    usage_error("sampler: initial noise ", draws.eps0.sizes(), ", expected [B, L, D]");
  if (!conditions.defined()) return;
  if (conditions.latents.sizes() != draws.eps0.sizes() ||
      conditions.mask.sizes() != draws.eps0.sizes().slice(0, 2)) {
    usage_error("sampler: condition latents ", conditions.latents.sizes(), " and mask ",
                conditions.mask.sizes(), " do not fit the noise ", draws.eps0.sizes());
  }
}

// The prediction of one step: all forwards that guidance asks for, as one batch.
class Predictor {
 public:
  Predictor(const SamplerModel& model, const SamplingConfig& config, const SampleConditions& conditions,
            const at::Tensor& like)
      : model_(model), w_(config.self_cond_cfg), cfg_(config.cfg), empty_(at::zeros_like(like)) {
    if (!conditions.defined()) return;
    mask_ = conditions.mask.to(like.device(), at::kBool);
    clean_ = pin_condition(empty_, conditions.latents.to(like.options()), mask_);
  }

  // Condition positions hold the clean condition.
  at::Tensor pin(const at::Tensor& z) const { return pin_condition(z, clean_, mask_); }
  at::Tensor start_self_cond() const { return mask_.defined() ? clean_ : empty_; }

  // z, self_cond [B, L, D] with the condition in place; t [B]. `first`: self_cond is the empty half.
  at::Tensor x_hat(const at::Tensor& z, const at::Tensor& self_cond, const at::Tensor& t, bool first) {
    const bool guide_self = model_.traits.self_cond && !model_.traits.cfg_tokens && w_ != 1.0 && !first;
    const bool guide_condition = mask_.defined() && cfg_ != 1.0;
    std::vector<at::Tensor> states, halves;
    const auto add = [&](const at::Tensor& state, const at::Tensor& empty_half, const at::Tensor& half) {
      if (guide_self) states.push_back(state), halves.push_back(empty_half);
      if (!guide_self || w_ != 0.0) states.push_back(state), halves.push_back(half);
    };
    add(z, start_self_cond(), self_cond);
    if (guide_condition) add(zero_condition(z, mask_), empty_, zero_condition(self_cond, mask_));

    std::vector<at::Tensor> predictions = forward(states, halves, t);
    if (guide_self && w_ != 0.0) {
      const size_t pairs = predictions.size() / 2;
      for (size_t i = 0; i < pairs; ++i)
        predictions[i] = guide(predictions[2 * i], predictions[2 * i + 1], w_);
    }
    return pin(guide_condition ? guide(predictions[1], predictions[0], cfg_) : predictions[0]);
  }

  int64_t forwards = 0, rows = 0;

 private:
  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& states,
                                  const std::vector<at::Tensor>& halves, const at::Tensor& t) {
    const int64_t parts = static_cast<int64_t>(states.size());
    DenoiserInput input;
    input.z = parts == 1 ? states.front() : at::cat(states);
    if (model_.traits.self_cond) input.self_cond = parts == 1 ? halves.front() : at::cat(halves);
    input.t = t.repeat({parts});
    if (model_.traits.cfg_tokens) input.w = at::full_like(input.t, w_);
    ++forwards;
    rows += input.z.size(0);
    return model_.network.x_hat(input).chunk(parts);
  }

  const SamplerModel& model_;
  double w_, cfg_;
  at::Tensor empty_;  // [B, L, D] zeros
  at::Tensor mask_;   // [B, L] condition positions; undefined: none
  at::Tensor clean_;  // [B, L, D] the condition, zero elsewhere
};

}  // namespace

SamplerDraws draw_sampler(const SamplingConfig& config, const std::vector<int64_t>& samples, int64_t length,
                          int64_t latent_dim, at::Device device) {
  const auto draw = [=, seed = config.seed](Purpose purpose, int64_t step) {
    return normal({seed, purpose, static_cast<uint64_t>(step)}, samples, {length, latent_dim}).to(device);
  };
  return {draw_time_grid(config), draw(Purpose::kSampleNoise, 0),
          [draw](int64_t step) { return draw(Purpose::kSampleStep, step); }};
}

LatentSamples sample_latents(const SamplerModel& model, const SamplingConfig& config,
                             const SamplerDraws& draws, const SampleConditions& conditions,
                             const StepObserver& observer) {
  at::NoGradGuard no_grad;
  check(draws, conditions);
  Predictor predictor(model, config, conditions, draws.eps0);
  const int64_t steps = static_cast<int64_t>(draws.times.size()) - 1;
  const auto time_of = [&](int64_t k) {
    return at::full({draws.eps0.size(0)}, draws.times[k], draws.eps0.options());
  };
  const bool noisy = config.sampler == SamplerKind::kSde && config.gamma != 0.0;

  at::Tensor z = predictor.pin(draws.eps0 * model.noise_scale);
  at::Tensor x_hat = predictor.start_self_cond();
  for (int64_t k = 0; k < steps; ++k) {
    at::Tensor t = time_of(k);
    const at::Tensor t_next = time_of(k + 1);
    if (noisy && k + 1 < steps) {
      const BackStep back = back_step(z, draws.step_noise(k), t, t_next, config.gamma, model.noise_scale);
      z = predictor.pin(back.z);
      t = back.t;
    }
    x_hat = predictor.x_hat(z, x_hat, t, k == 0);
    z = predictor.pin(euler_step(z, x_hat, t, t_next, model.t_eps));
    if (observer) observer({k, draws.times[k + 1], z, x_hat});
  }
  return {z, predictor.forwards, predictor.rows};
}

}  // namespace elf
