// Progressive distillation the plain way, as docs/ALGORITHM.md section 5 tells it: teacher and both heads on
// every row and position. Shows every intermediate under the names of golden/README.md. The reference of
// elf::distillation_objective.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "elf/flow/distillation.h"
#include "elf/tensor/safetensors.h"

namespace elf::test {

struct PlainDistillation {
  at::Tensor total, ce_mean, l2_mean;
  TensorMap seen;  // "mid/..." and "walk/..."
};

inline at::Tensor plain_schedule(const at::Tensor& raw, TimeDistribution schedule, const FlowConfig& config) {
  return schedule == TimeDistribution::kUniform
             ? raw
             : at::sigmoid(config.denoiser_p_mean + config.denoiser_p_std * raw);
}

// The walk from z along `times`; fills the walk's part of `out` and returns x*.
inline at::Tensor plain_target(Denoiser& teacher, const NetworkTraits& traits, const at::Tensor& x,
                               const at::Tensor& cond, const at::Tensor& z0, at::Tensor half,
                               const at::Tensor& w, const at::Tensor& times, double t_eps, TensorMap& out) {
  const at::NoGradGuard no_grad;
  const auto per_row = [](const at::Tensor& v) { return v.reshape({-1, 1, 1}); };
  const int64_t n = times.size(1) - 1;
  at::Tensor z = z0, x_hat;
  std::vector<at::Tensor> zs, ts, halves, x_hats;
  for (int64_t k = 0; k < n; ++k) {
    const at::Tensor t = times.select(1, k), t_next = times.select(1, k + 1);
    zs.push_back(z), ts.push_back(t), halves.push_back(half);
    x_hat = teacher.x_hat({z, traits.self_cond ? half : at::Tensor(), t, w, {}, {}});
    x_hats.push_back(x_hat);
    x_hat = cond * x + (1 - cond) * x_hat;
    const at::Tensor v = (x_hat - z) / at::clamp_min(1 - per_row(t), t_eps);
    z = cond * z + (1 - cond) * (z + per_row(t_next - t) * v);
    half = x_hat;
  }
  out["walk/z"] = at::stack(zs);
  out["walk/t"] = at::stack(ts);
  out["walk/self_cond_half"] = at::stack(halves);
  out["walk/x_hat"] = at::stack(x_hats);
  out["walk/z_end"] = z;
  if (n == 1) return x_hat;
  const at::Tensor span = per_row(times.select(1, n) - times.select(1, 0));
  const at::Tensor far = z0 + (1 - per_row(times.select(1, 0))) / span * (z - z0);
  return at::where(span < 1e-3, x_hat, far);
}

inline PlainDistillation plain_distillation(Denoiser& student, Denoiser& teacher, const NetworkTraits& traits,
                                            const ObjectiveInput& in, const StepDraws& draws,
                                            const DistillationRound& round, const FlowConfig& config) {
  PlainDistillation out;
  TensorMap& seen = out.seen;
  const auto per_row = [](const at::Tensor& v) { return v.reshape({-1, 1, 1}); };
  const at::Tensor x = seen["mid/x"] = in.latents, cond = in.cond_mask.unsqueeze(-1).to(at::kFloat);
  const at::Tensor t_s =
      plain_schedule(draws.time, round.student_schedule, config) * std::max(1 - round.step_size, 1e-6);
  const at::Tensor t_t = t_s + round.step_size;
  seen["mid/t_s"] = t_s;
  seen["mid/t_t"] = t_t;
  at::Tensor z = per_row(t_s) * x + (1 - per_row(t_s)) * config.denoiser_noise_scale * draws.eps;
  seen["mid/z"] = z = cond * x + (1 - cond) * z;
  at::Tensor w;
  if (traits.cfg_tokens) {
    const double a = config.self_cond_cfg_min, b = config.self_cond_cfg_max;
    w = seen["mid/w"] =
        b <= a ? at::full_like(t_s, a) : (1 + a) * at::exp(draws.w * std::log((1 + b) / (1 + a))) - 1;
  }
  const at::Tensor p =
      at::sigmoid(config.decoder_p_mean + config.decoder_p_std * draws.p_normal).unsqueeze(-1);
  at::Tensor z_decode = p * x + (1 - p) * config.decoder_noise_scale * draws.decoder_eps;
  if (config.decode_condition == DecodeCondition::kClean) z_decode = cond * x + (1 - cond) * z_decode;
  seen["mid/z_decode"] = z_decode;

  const at::Tensor decode = draws.decoder_row.to(at::kFloat);
  at::Tensor half;
  if (traits.self_cond) {
    const at::NoGradGuard no_grad;
    const at::Tensor empty = cond * x;
    at::Tensor guess = teacher.x_hat({z, empty, t_s, w, {}, {}});
    seen["mid/teacher_zero_half_x_hat"] = guess;
    guess = cond * x + (1 - cond) * guess;
    const at::Tensor coin = per_row(draws.self_cond.lt(config.self_cond_prob).to(at::kFloat) * (1 - decode));
    half = seen["mid/self_cond_half"] = coin * guess + (1 - coin) * empty;
  }
  at::Tensor times = t_s.unsqueeze(1);
  if (round.teacher_steps > 1) {
    const at::Tensor inner =
        std::get<0>(plain_schedule(draws.substeps, round.teacher_schedule, config).sort(1)) * round.step_size;
    times = at::cat({times, t_s.unsqueeze(1) + inner}, 1);
  }
  times = seen["mid/substep_times"] = at::cat({times, t_t.unsqueeze(1)}, 1);
  const at::Tensor target = seen["mid/target"] =
      plain_target(teacher, traits, x, cond, z, half, w, times, config.t_eps, seen);

  const at::Tensor z_in = per_row(decode) * z_decode + (1 - per_row(decode)) * z;
  seen["mid/model_input"] = traits.self_cond ? at::cat({z_in, half}, -1) : z_in;
  const at::Tensor features = student.features({z_in, half, decode + (1 - decode) * t_s, w, decode, {}});
  const at::Tensor x_hat = seen["mid/x_hat"] = student.denoise_head(features);
  const at::Tensor logits = student.decode_head(features);
  const at::Tensor ce = seen["mid/ce_per_position"] =
      -logits.log_softmax(-1).gather(-1, in.ids.unsqueeze(-1)).squeeze(-1);
  const at::Tensor mse = seen["mid/mse_per_position"] = (x_hat - target).square().mean(-1);
  at::Tensor mask = 1 - in.cond_mask.to(at::kFloat);
  if (config.pad_token == PadToken::kPad) mask = mask * in.valid_mask.to(at::kFloat);
  seen["mid/loss_mask"] = mask;
  const at::Tensor count = mask.sum(1).clamp_min(1);
  const at::Tensor ce_row = seen["mid/ce_per_row"] = (ce * mask).sum(1) / count;
  const at::Tensor mse_row = seen["mid/mse_per_row"] = (mse * mask).sum(1) / count;
  out.total = (ce_row * decode + mse_row * (1 - decode)).mean();
  out.ce_mean = (ce_row * decode).sum() / decode.sum().clamp_min(1);
  out.l2_mean = (mse_row * (1 - decode)).sum() / (1 - decode).sum().clamp_min(1);
  return out;
}

}  // namespace elf::test
