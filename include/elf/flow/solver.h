// One step of the samplers along the flow (docs/ALGORITHM.md section 4). Pure; times go by row, so that rows
// may walk different grids. Shapes: z, x_hat, eps [B, L, D] f32; t, t_next [B] f32 in [0, 1], t <= t_next.
#pragma once

#include <ATen/core/Tensor.h>

namespace elf {

// Euler: z + (t_next - t) (x_hat - z) / max(1 - t, t_eps).
at::Tensor euler_step(const at::Tensor& z, const at::Tensor& x_hat, const at::Tensor& t,
                      const at::Tensor& t_next, double t_eps);

// Second half of a Heun step, x_hat_end being the prediction at (z_end, t_next) where Euler led: the mean of
// both velocities, z + (t_next - t) / 2 (v(x_hat, z, t) + v(x_hat_end, z_end, t_next)). Second order.
at::Tensor heun_step(const at::Tensor& z, const at::Tensor& x_hat, const at::Tensor& z_end,
                     const at::Tensor& x_hat_end, const at::Tensor& t, const at::Tensor& t_next,
                     double t_eps);

// A step by this velocity and the one of t_before < t (Adams and Bashforth's second):
//   z + h ((1 + r/2) v - r/2 v_before),  h = t_next - t,  r = h / (t - t_before), at most 2.
// Second order. The bound keeps steps that are much longer than the one before from running away.
at::Tensor multistep_step(const at::Tensor& z, const at::Tensor& v, const at::Tensor& v_before,
                          const at::Tensor& t_before, const at::Tensor& t, const at::Tensor& t_next);

// First half of an SDE step: back towards noise, from where Euler goes to t_next. With a = clip(1 - gamma
// (t_next - t), 0, 1): t_b = a t, z_b = a z + (1 - a) noise_scale eps. gamma = 0 changes nothing.
struct BackStep {
  at::Tensor z;  // [B, L, D] z_b
  at::Tensor t;  // [B] t_b
};
BackStep back_step(const at::Tensor& z, const at::Tensor& eps, const at::Tensor& t, const at::Tensor& t_next,
                   double gamma, double noise_scale);

}  // namespace elf
