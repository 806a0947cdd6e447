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

at::Tensor multistep_step(const at::Tensor& z, const at::Tensor& x_hat, const at::Tensor& x_hat_before,
                          const at::Tensor& t_before, const at::Tensor& t, const at::Tensor& t_next,
                          double t_eps) {
  // Differences of nearly equal numbers: in double precision, on rows only.
  const at::Tensor begin = t.to(at::kDouble), end = t_next.to(at::kDouble);
  const at::Tensor step = end - begin, before = begin - t_before.to(at::kDouble);
  const at::Tensor left = at::clamp_min(1.0 - end, t_eps), from = at::clamp_min(1.0 - begin, t_eps);
  const at::Tensor reach = at::clamp_min(step - left * at::log(from / left), 0.0);
  const at::Tensor follow = at::clamp_max(2.0 * before / at::clamp_min(step, 1e-12), 1.0);
  const at::Tensor weight =
      at::where(before.gt(0.0), reach * follow / at::clamp_min(before, 1e-12), at::zeros_like(before));
  return euler_step(z, x_hat, t, t_next, t_eps) +
         broadcast_rows(weight.to(z.scalar_type()), z) * (x_hat - x_hat_before);
}

BackStep back_step(const at::Tensor& z, const at::Tensor& eps, const at::Tensor& t, const at::Tensor& t_next,
                   double gamma, double noise_scale) {
  const at::Tensor a = at::clamp(1.0 - gamma * (t_next - t), 0.0, 1.0);
  return {broadcast_rows(a, z) * z + broadcast_rows((1.0 - a) * noise_scale, z) * eps, a * t};
}

}  // namespace elf
