// Adams and Bashforth's second: one prediction a step, second order by the velocity of the step before.
#include "elf/flow/interpolant.h"
#include "elf/flow/solver.h"
#include "samplers.h"

namespace elf {

void step_multistep(SamplerWalk& walk, SamplerState& s, int64_t k) {
  const at::Tensor t = walk.times(k);
  s.x_hat = walk.x_hat(s.z, s.x_hat, t, walk.time(k), k == 0);
  const at::Tensor v = velocity(s.x_hat, s.z, t, walk.model.t_eps);
  s.z = multistep_step(s.z, v, k > 0 ? s.v : v, k > 0 ? walk.times(k - 1) : t, t, walk.times(k + 1));
  s.v = v;
}

}  // namespace elf
