// Euler steps of the ODE.
#include "elf/flow/solver.h"
#include "samplers.h"

namespace elf {

void step_ode(SamplerWalk& walk, SamplerState& s, int64_t k) {
  const at::Tensor t = walk.times(k);
  s.x_hat = walk.x_hat(s.z, s.x_hat, t, walk.time(k), k == 0);
  s.z = euler_step(s.z, s.x_hat, t, walk.times(k + 1), walk.model.t_eps);
}

}  // namespace elf
