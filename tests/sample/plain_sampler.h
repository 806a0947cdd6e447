// The sampler written out call by call, in the order of the published code: the plain reference of
// sample_latents. Records what the network was given.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "elf/sample/sampler.h"

namespace elf::test {

struct PlainTrace {
  std::vector<at::Tensor> z, x_hat;  // after each step
  std::vector<at::Tensor> inputs;    // of each call: [B, L, D or 2D]
  std::vector<double> times;         // of each call
};

class PlainSampler {
 public:
  PlainSampler(const SamplerModel& model, const SamplingConfig& config, const SamplerDraws& draws,
               const SampleConditions& conditions)
      : model_(model), config_(config), draws_(draws) {
    mask_ = conditions.defined() ? conditions.mask.to(at::kFloat).unsqueeze(-1)
                                 : at::zeros({draws.eps0.size(0), draws.eps0.size(1), 1});
    clean_ = conditions.defined() ? conditions.latents * mask_ : at::zeros_like(draws.eps0);
    conditional_ = conditions.defined();
  }

  PlainTrace run() {
    at::NoGradGuard no_grad;
    at::Tensor z = restore(draws_.eps0 * model_.noise_scale), x_hat = clean_;
    const size_t steps = draws_.times.size() - 1;
    for (size_t k = 0; k < steps; ++k) {
      double t = draws_.times[k];
      const double t_next = draws_.times[k + 1];
      if (config_.sampler == SamplerKind::kSde && k + 1 < steps) {
        const double a = std::clamp(1.0 - config_.gamma * (t_next - t), 0.0, 1.0);
        z = restore(a * z + (1.0 - a) * model_.noise_scale * draws_.step_noise(static_cast<int64_t>(k)));
        t = a * t;
      }
      at::Tensor velocity;
      std::tie(x_hat, velocity) = guided_on_condition(z, x_hat, t);
      z = z + (t_next - t) * velocity;
      trace_.z.push_back(z);
      trace_.x_hat.push_back(x_hat);
    }
    return trace_;
  }

 private:
  at::Tensor restore(const at::Tensor& x) const { return (1 - mask_) * x + clean_; }

  std::pair<at::Tensor, at::Tensor> guided_on_condition(const at::Tensor& z, const at::Tensor& previous,
                                                        double t) {
    at::Tensor x = guided_on_self(z, previous, clean_, t);
    at::Tensor v = (x - z) / std::max(1.0 - t, model_.t_eps);
    if (conditional_ && config_.cfg != 1.0) {
      const at::Tensor z_free = z * (1 - mask_);
      const at::Tensor x_free = guided_on_self(z_free, previous * (1 - mask_), at::zeros_like(z), t);
      const at::Tensor v_free = (x_free - z_free) / std::max(1.0 - t, model_.t_eps);
      x = x_free + config_.cfg * (x - x_free);
      v = v_free + config_.cfg * (v - v_free);
    }
    return {restore(x), v * (1 - mask_)};
  }

  at::Tensor guided_on_self(const at::Tensor& z, const at::Tensor& previous, const at::Tensor& empty,
                            double t) {
    const double w = config_.self_cond_cfg;
    if (!model_.traits.self_cond || model_.traits.cfg_tokens || w == 1.0) return call(z, previous, t);
    if (w == 0.0) return call(z, empty, t);
    const at::Tensor without = call(z, empty, t), with = call(z, previous, t);
    return without + w * (with - without);
  }

  at::Tensor call(const at::Tensor& z, const at::Tensor& half, double t) {
    DenoiserInput input;
    input.z = z;
    if (model_.traits.self_cond) input.self_cond = half;
    input.t = at::full({z.size(0)}, t);
    if (model_.traits.cfg_tokens) input.w = at::full({z.size(0)}, config_.self_cond_cfg);
    trace_.inputs.push_back(model_.traits.self_cond ? at::cat({z, half}, -1) : z);
    trace_.times.push_back(t);
    return model_.network.x_hat(input);
  }

  const SamplerModel& model_;
  const SamplingConfig& config_;
  const SamplerDraws& draws_;
  at::Tensor mask_, clean_;
  bool conditional_;
  PlainTrace trace_;
};

}  // namespace elf::test
