#include "elf/flow/solver.h"

#include <ATen/ATen.h>

namespace elf {
namespace {

// [B] -> [B, 1, 1]
at::Tensor per_row(const at::Tensor& t) {
  return t.view({-1, 1, 1});
}

}  // namespace

at::Tensor euler_step(const at::Tensor& z, const at::Tensor& x_hat, const at::Tensor& t,
                      const at::Tensor& t_next, double t_eps) {
  const at::Tensor share = (t_next - t) / at::clamp_min(1.0 - t, t_eps);  // of the way from z to x_hat
  return z + per_row(share) * (x_hat - z);
}

BackStep back_step(const at::Tensor& z, const at::Tensor& eps, const at::Tensor& t, const at::Tensor& t_next,
                   double gamma, double noise_scale) {
  const at::Tensor a = at::clamp(1.0 - gamma * (t_next - t), 0.0, 1.0);
  return {per_row(a) * z + per_row((1.0 - a) * noise_scale) * eps, a * t};
}

}  // namespace elf
