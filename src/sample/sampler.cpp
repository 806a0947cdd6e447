#include "elf/sample/sampler.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "elf/base/error.h"
#include "elf/config/schedules.h"
#include "elf/flow/conditioning.h"
#include "elf/flow/guidance.h"
#include "elf/flow/interpolant.h"
#include "elf/flow/solver.h"
#include "elf/flow/times.h"
#include "elf/tensor/device.h"
#include "elf/tensor/random.h"

namespace elf {
namespace {

void check(const SamplerDraws& draws, const SampleConditions& conditions) {
  if (draws.times.size() < 2)
    usage_error("sampler: ", draws.times.size(), " times, expected at least 2 (one step)");
  if (draws.eps0.dim() != 3)
    usage_error("sampler: initial noise ", draws.eps0.sizes(), ", expected [B, L, D]");
  const auto require = [&](const char* what, const at::Tensor& latents, const at::Tensor& mask) {
    if (!mask.defined()) return;
    if (latents.sizes() != draws.eps0.sizes() || mask.sizes() != draws.eps0.sizes().slice(0, 2)) {
      usage_error("sampler: ", what, " latents ", latents.sizes(), " and mask ", mask.sizes(),
                  " do not fit the noise ", draws.eps0.sizes());
    }
  };
  require("condition", conditions.latents, conditions.mask);
  require("known", conditions.known.latents, conditions.known.mask);
}

// The prediction of one step: all forwards that guidance asks for, as one batch.
class Predictor {
 public:
  Predictor(const SamplerModel& model, const SamplingConfig& config, const SampleConditions& conditions,
            const at::Tensor& like)
      : model_(model),
        w_(ScaleSchedule::of(config.self_cond_cfg, config.self_cond_cfg_schedule, "self_cond_cfg_schedule")),
        cfg_(ScaleSchedule::of(config.cfg, config.cfg_schedule, "cfg_schedule")),
        empty_(at::zeros_like(like)) {
    if (conditions.known.mask.defined()) {
      known_mask_ = conditions.known.mask.to(like.device(), at::kBool);
      know(conditions.known.latents);
    }
    if (!conditions.defined()) return;
    mask_ = conditions.mask.to(like.device(), at::kBool);
    clean_ = pin_condition(empty_, conditions.latents.to(like.options()), mask_);
  }

  // Condition positions hold the clean condition.
  at::Tensor pin(const at::Tensor& z) const { return pin_condition(z, clean_, mask_); }
  at::Tensor start_self_cond() const { return mask_.defined() ? clean_ : empty_; }
  // New latents [B, L, D] of the known positions.
  void know(const at::Tensor& latents) { known_ = latents.to(empty_.options()); }

  // z, self_cond [B, L, D] with the condition in place; t [B], all of it `time`. `first`: self_cond is the
  // empty half.
  at::Tensor x_hat(const at::Tensor& z, const at::Tensor& self_cond, const at::Tensor& t, double time,
                   bool first) {
    const double w = w_.at(time), cfg = cfg_.at(time);
    const bool guide_self = model_.traits.self_cond && !model_.traits.cfg_tokens && w != 1.0 && !first;
    const bool guide_condition = mask_.defined() && cfg != 1.0;
    std::vector<at::Tensor> states, halves;
    const auto add = [&](const at::Tensor& state, const at::Tensor& empty_half, const at::Tensor& half) {
      if (guide_self) states.push_back(state), halves.push_back(empty_half);
      if (!guide_self || w != 0.0) states.push_back(state), halves.push_back(half);
    };
    add(z, start_self_cond(), self_cond);
    if (guide_condition) add(zero_condition(z, mask_), empty_, zero_condition(self_cond, mask_));

    std::vector<at::Tensor> predictions = forward(states, halves, t, w);
    if (guide_self && w != 0.0) {
      const size_t pairs = predictions.size() / 2;
      for (size_t i = 0; i < pairs; ++i)
        predictions[i] = guide(predictions[2 * i], predictions[2 * i + 1], w);
    }
    const at::Tensor x = guide_condition ? guide(predictions[1], predictions[0], cfg) : predictions[0];
    return pin(pin_condition(x, known_, known_mask_));
  }

  int64_t forwards = 0, rows = 0;

 private:
  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& states,
                                  const std::vector<at::Tensor>& halves, const at::Tensor& t, double w) {
    const int64_t parts = static_cast<int64_t>(states.size());
    DenoiserInput input;
    input.z = parts == 1 ? states.front() : at::cat(states);
    if (model_.traits.self_cond) input.self_cond = parts == 1 ? halves.front() : at::cat(halves);
    input.t = t.repeat({parts});
    if (model_.traits.cfg_tokens) input.w = at::full_like(input.t, w);
    ++forwards;
    rows += input.z.size(0);
    return model_.network.x_hat(input).chunk(parts);
  }

  const SamplerModel& model_;
  ScaleSchedule w_, cfg_;
  at::Tensor empty_;               // [B, L, D] zeros
  at::Tensor mask_;                // [B, L] condition positions; undefined: none
  at::Tensor clean_;               // [B, L, D] the condition, zero elsewhere
  at::Tensor known_, known_mask_;  // [B, L, D], [B, L] of KnownLatents; undefined: none
};

// Where the samples stand, and what brought them there.
struct State {
  at::Tensor z, x_hat;  // [B, L, D]
  at::Tensor v = {};    // [B, L, D] velocity of the step before; only kMultistep keeps it
};

// One step of the walk from times[k] to times[k + 1].
class Stepper {
 public:
  Stepper(const SamplerModel& model, const SamplingConfig& config, const SamplerDraws& draws,
          Predictor& predictor)
      : model_(model), config_(config), draws_(draws), predictor_(predictor) {}

  void step(State& s, int64_t k) {
    const bool last = k + 2 == static_cast<int64_t>(draws_.times.size());
    if (config_.sampler == SamplerKind::kSde && config_.gamma != 0.0 && !last) return sde(s, k);
    const at::Tensor t = time(k), t_next = time(k + 1);
    s.x_hat = predictor_.x_hat(s.z, s.x_hat, t, draws_.times[k], k == 0);
    if (config_.sampler == SamplerKind::kHeun && !last) {
      const at::Tensor end = predictor_.pin(euler_step(s.z, s.x_hat, t, t_next, model_.t_eps));
      const at::Tensor x_hat_end = predictor_.x_hat(end, s.x_hat, t_next, draws_.times[k + 1], false);
      s.z = heun_step(s.z, s.x_hat, end, x_hat_end, t, t_next, model_.t_eps);
      s.x_hat = x_hat_end;
    } else if (config_.sampler == SamplerKind::kMultistep && !last) {
      const at::Tensor v = velocity(s.x_hat, s.z, t, model_.t_eps);
      s.z = multistep_step(s.z, v, k > 0 ? s.v : v, k > 0 ? time(k - 1) : t, t, t_next);
      s.v = v;
    } else {
      s.z = euler_step(s.z, s.x_hat, t, t_next, model_.t_eps);
    }
    s.z = predictor_.pin(s.z);
  }

 private:
  void sde(State& s, int64_t k) {
    const at::Tensor t = time(k), t_next = time(k + 1);
    const BackStep back = back_step(s.z, draws_.step_noise(k), t, t_next, config_.gamma, model_.noise_scale);
    const at::Tensor z_back = predictor_.pin(back.z);
    const double a = std::clamp(1.0 - config_.gamma * (draws_.times[k + 1] - draws_.times[k]), 0.0, 1.0);
    s.x_hat = predictor_.x_hat(z_back, s.x_hat, back.t, a * draws_.times[k], k == 0);
    s.z = predictor_.pin(config_.sde_update == SdeUpdate::kPublished
                             ? euler_step(z_back, s.x_hat, back.t, t_next, model_.t_eps)
                             : euler_step(s.z, s.x_hat, t, t_next, model_.t_eps));
  }

  at::Tensor time(int64_t k) const {
    return at::full({draws_.eps0.size(0)}, draws_.times[k], draws_.eps0.options());
  }

  const SamplerModel& model_;
  const SamplingConfig& config_;
  const SamplerDraws& draws_;
  Predictor& predictor_;
};

}  // namespace

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
  check(draws, conditions);
  Predictor predictor(model, config, conditions, draws.eps0);
  Stepper stepper(model, config, draws, predictor);
  const int64_t steps = static_cast<int64_t>(draws.times.size()) - 1;

  State state{predictor.pin(draws.eps0 * model.noise_scale), predictor.start_self_cond()};
  for (int64_t k = 0; k < steps; ++k) {
    stepper.step(state, k);
    if (observer) observer({k, draws.times[k + 1], state.z, state.x_hat});
    if (conditions.known.refresh && k + 1 < steps) predictor.know(conditions.known.refresh(state.x_hat));
  }
  return {state.z, predictor.forwards, predictor.rows};
}

}  // namespace elf
