// `sampling:` how elf-sample draws (docs/ALGORITHM.md section 4); the defaults are those published for
// OpenWebText.
#pragma once

#include <cstdint>

namespace elf {

enum class SamplerKind { kSde, kOde };  // sde | ode
enum class TimeGrid {
  kLogitNormal,
  kUniform,
  kLogitNormalQuantiles
};  // logit_normal | uniform | logit_normal_quantiles

struct SamplingConfig {
  SamplerKind sampler = SamplerKind::kSde;
  int64_t steps = 32;
  double gamma = 1.5;          // of the SDE; 0 = the ODE
  double self_cond_cfg = 3.0;  // w; 1 for conditional tasks
  double cfg = 1.0;            // guidance on the condition; 2 published for conditional tasks
  TimeGrid time_schedule = TimeGrid::kLogitNormal;
  double p_mean = -1.5;  // of the logit-normal grids
  double p_std = 0.8;
  uint64_t seed = 0;
  int64_t batch_size = 64;  // rows at a time; the result does not depend on it

  bool operator==(const SamplingConfig&) const = default;
};

}  // namespace elf
