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

// A step that takes the prediction as a line in t through this one and the one of t_before < t, and solves
// dz/dt = (x(t) - z) / (1 - t) exactly for it (DPM-Solver++(2M) of Lu et al., 2022, in this path's terms):
//   euler_step + slope ((t_next - t) - (1 - t_next) ln((1 - t) / (1 - t_next))),
//   slope = (x_hat - x_hat_before) / (t - t_before).
// Second order. The line is followed for at most twice the step before: longer steps take the part of the
// slope that leads as far, so that no grid makes the extrapolation run away.
at::Tensor multistep_step(const at::Tensor& z, const at::Tensor& x_hat, const at::Tensor& x_hat_before,
                          const at::Tensor& t_before, const at::Tensor& t, const at::Tensor& t_next,
                          double t_eps);

// First half of an SDE step: back towards noise, from where Euler goes to t_next. With a = clip(1 - gamma
// (t_next - t), 0, 1): t_b = a t, z_b = a z + (1 - a) noise_scale eps. gamma = 0 changes nothing.
struct BackStep {
  at::Tensor z;  // [B, L, D] z_b
  at::Tensor t;  // [B] t_b
};
BackStep back_step(const at::Tensor& z, const at::Tensor& eps, const at::Tensor& t, const at::Tensor& t_next,
                   double gamma, double noise_scale);

}  // namespace elf
