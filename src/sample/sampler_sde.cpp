// The SDE: back towards noise by so much as gamma says, then an Euler step from there.
#include <algorithm>

#include "elf/flow/solver.h"
#include "samplers.h"

namespace elf {

void step_sde(SamplerWalk& walk, SamplerState& s, int64_t k) {
  const double gamma = walk.config.gamma;
  if (gamma == 0.0) return step_ode(walk, s, k);
  const at::Tensor t = walk.times(k), t_next = walk.times(k + 1);
  const BackStep back = back_step(s.z, walk.noise(k), t, t_next, gamma, walk.model.noise_scale);
  const at::Tensor z_back = walk.pin(back.z);
  const double a = std::clamp(1.0 - gamma * (walk.time(k + 1) - walk.time(k)), 0.0, 1.0);
  s.x_hat = walk.x_hat(z_back, s.x_hat, back.t, a * walk.time(k), k == 0);
  s.z = walk.config.sde_update == SdeUpdate::kPublished
            ? euler_step(z_back, s.x_hat, back.t, t_next, walk.model.t_eps)
            : euler_step(s.z, s.x_hat, t, t_next, walk.model.t_eps);
}

}  // namespace elf
