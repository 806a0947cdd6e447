// One step of the samplers along the flow (docs/ALGORITHM.md section 4). Pure; times go by row, so that rows
// may walk different grids. Shapes: z, x_hat, eps [B, L, D] f32; t, t_next [B] f32 in [0, 1], t <= t_next.
#pragma once

#include <ATen/core/Tensor.h>

namespace elf {

// Euler: z + (t_next - t) (x_hat - z) / max(1 - t, t_eps).
at::Tensor euler_step(const at::Tensor& z, const at::Tensor& x_hat, const at::Tensor& t,
                      const at::Tensor& t_next, double t_eps);

// First half of an SDE step: back towards noise, from where Euler goes to t_next. With a = clip(1 - gamma
// (t_next - t), 0, 1): t_b = a t, z_b = a z + (1 - a) noise_scale eps. gamma = 0 changes nothing.
struct BackStep {
  at::Tensor z;  // [B, L, D] z_b
  at::Tensor t;  // [B] t_b
};
BackStep back_step(const at::Tensor& z, const at::Tensor& eps, const at::Tensor& t, const at::Tensor& t_next,
                   double gamma, double noise_scale);

}  // namespace elf
