#include "elf/flow/solver.h"

#include <ATen/ATen.h>

#include "elf/flow/interpolant.h"

namespace elf {

at::Tensor euler_step(const at::Tensor& z, const at::Tensor& x_hat, const at::Tensor& t,
                      const at::Tensor& t_next, double t_eps) {
  return z + broadcast_rows(t_next - t, z) * velocity(x_hat, z, t, t_eps);
}

at::Tensor heun_step(const at::Tensor& z, const at::Tensor& x_hat, const at::Tensor& z_end,
                     const at::Tensor& x_hat_end, const at::Tensor& t, const at::Tensor& t_next,
                     double t_eps) {
  return z + broadcast_rows(0.5 * (t_next - t), z) *
                 (velocity(x_hat, z, t, t_eps) + velocity(x_hat_end, z_end, t_next, t_eps));
}

at::Tensor multistep_step(const at::Tensor& z, const at::Tensor& v, const at::Tensor& v_before,
                          const at::Tensor& t_before, const at::Tensor& t, const at::Tensor& t_next) {
  const at::Tensor h = t_next - t, before = t - t_before;
  const at::Tensor ratio = at::clamp_max(h / before, 2.0).masked_fill(before.le(0.0), 0.0);
  return z + broadcast_rows(h, z) * (v + broadcast_rows(0.5 * ratio, z) * (v - v_before));
}

BackStep back_step(const at::Tensor& z, const at::Tensor& eps, const at::Tensor& t, const at::Tensor& t_next,
                   double gamma, double noise_scale) {
  const at::Tensor a = at::clamp(1.0 - gamma * (t_next - t), 0.0, 1.0);
  return {broadcast_rows(a, z) * z + broadcast_rows((1.0 - a) * noise_scale, z) * eps, a * t};
}

}  // namespace elf
