#include "elf/flow/solver.h"

#include <ATen/ATen.h>

#include "elf/flow/interpolant.h"

namespace elf {
at::Tensor euler_step(const at::Tensor& z, const at::Tensor& x_hat, const at::Tensor& t,
                      const at::Tensor& t_next, double t_eps) {
  return z + broadcast_rows(t_next - t, z) * velocity(x_hat, z, t, t_eps);
}

BackStep back_step(const at::Tensor& z, const at::Tensor& eps, const at::Tensor& t, const at::Tensor& t_next,
                   double gamma, double noise_scale) {
  const at::Tensor a = at::clamp(1.0 - gamma * (t_next - t), 0.0, 1.0);
  return {broadcast_rows(a, z) * z + broadcast_rows((1.0 - a) * noise_scale, z) * eps, a * t};
}

}  // namespace elf
