// Heun's method: a second prediction where Euler leads, and the mean of both velocities.
#include "elf/flow/solver.h"
#include "samplers.h"

namespace elf {

void step_heun(SamplerWalk& walk, SamplerState& s, int64_t k) {
  const at::Tensor t = walk.times(k), t_next = walk.times(k + 1);
  const double t_eps = walk.model.t_eps;
  s.x_hat = walk.x_hat(s.z, s.x_hat, t, walk.time(k), k == 0);
  const at::Tensor end = walk.pin(euler_step(s.z, s.x_hat, t, t_next, t_eps));
  const at::Tensor x_hat_end = walk.x_hat(end, s.x_hat, t_next, walk.time(k + 1), false);
  s.z = heun_step(s.z, s.x_hat, end, x_hat_end, t, t_next, t_eps);
  s.x_hat = x_hat_end;
}

}  // namespace elf
