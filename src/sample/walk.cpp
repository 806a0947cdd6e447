#include "walk.h"

#include <ATen/ATen.h>

#include "elf/base/error.h"
#include "elf/flow/conditioning.h"
#include "elf/flow/guidance.h"

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

}  // namespace

SamplerWalk::SamplerWalk(const SamplerModel& of_model, const SamplingConfig& of_config,
                         const SamplerDraws& draws, const SampleConditions& conditions)
    : model(of_model),
      config(of_config),
      draws_(draws),
      w_(ScaleSchedule::of(config.self_cond_cfg, config.self_cond_cfg_schedule, "self_cond_cfg_schedule")),
      cfg_(ScaleSchedule::of(config.cfg, config.cfg_schedule, "cfg_schedule")) {
  check(draws, conditions);
  empty_ = at::zeros_like(draws.eps0);
  if (conditions.known.mask.defined()) {
    known_mask_ = conditions.known.mask.to(empty_.device(), at::kBool);
    know(conditions.known.latents);
  }
  if (!conditions.defined()) return;
  mask_ = conditions.mask.to(empty_.device(), at::kBool);
  clean_ = pin_condition(empty_, conditions.latents.to(empty_.options()), mask_);
}

SamplerState SamplerWalk::start() const {
  return {pin(draws_.eps0 * model.noise_scale), no_self_cond()};
}

at::Tensor SamplerWalk::times(int64_t k) const {
  return at::full({draws_.eps0.size(0)}, time(k), draws_.eps0.options());
}

at::Tensor SamplerWalk::pin(const at::Tensor& z) const {
  return pin_condition(z, clean_, mask_);
}

void SamplerWalk::know(const at::Tensor& latents) {
  known_ = latents.to(empty_.options());
}

at::Tensor SamplerWalk::x_hat(const at::Tensor& z, const at::Tensor& self_cond, const at::Tensor& t,
                              double time, bool first) {
  const double w = w_.at(time), cfg = cfg_.at(time);
  const bool guide_self = model.traits.self_cond && !model.traits.cfg_tokens && w != 1.0 && !first;
  const bool guide_condition = mask_.defined() && cfg != 1.0;
  std::vector<at::Tensor> states, halves;
  const auto add = [&](const at::Tensor& state, const at::Tensor& empty_half, const at::Tensor& half) {
    if (guide_self) states.push_back(state), halves.push_back(empty_half);
    if (!guide_self || w != 0.0) states.push_back(state), halves.push_back(half);
  };
  add(z, no_self_cond(), self_cond);
  if (guide_condition) add(zero_condition(z, mask_), empty_, zero_condition(self_cond, mask_));

  std::vector<at::Tensor> predictions = forward(states, halves, t, w);
  if (guide_self && w != 0.0) {
    const size_t pairs = predictions.size() / 2;
    for (size_t i = 0; i < pairs; ++i) predictions[i] = guide(predictions[2 * i], predictions[2 * i + 1], w);
  }
  const at::Tensor x = guide_condition ? guide(predictions[1], predictions[0], cfg) : predictions[0];
  return pin(pin_condition(x, known_, known_mask_));
}

std::vector<at::Tensor> SamplerWalk::forward(const std::vector<at::Tensor>& states,
                                             const std::vector<at::Tensor>& halves, const at::Tensor& t,
                                             double w) {
  const int64_t parts = static_cast<int64_t>(states.size());
  DenoiserInput input;
  input.z = parts == 1 ? states.front() : at::cat(states);
  if (model.traits.self_cond) input.self_cond = parts == 1 ? halves.front() : at::cat(halves);
  input.t = t.repeat({parts});
  if (model.traits.cfg_tokens) input.w = at::full_like(input.t, w);
  ++forwards_;
  rows_ += input.z.size(0);
  return model.network.x_hat(input).chunk(parts);
}

}  // namespace elf
