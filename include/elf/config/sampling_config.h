// `sampling:` how elf-sample draws (docs/ALGORITHM.md section 4); the defaults are those published for
// OpenWebText.
#pragma once

#include <cstdint>
#include <string>

namespace elf {

// sde | ode: Euler steps of the ODE | heun: two predictions a step, second order | multistep: one prediction
// a step, second order by the one before
enum class SamplerKind { kSde, kOde, kHeun, kMultistep };
// Where an SDE step starts from once the prediction is made: published: the state moved back towards noise,
// as the published code does | paper: the state before that, as in the paper's listing
enum class SdeUpdate { kPublished, kPaper };
enum class TimeGrid {
  kLogitNormal,
  kUniform,
  kLogitNormalQuantiles
};  // logit_normal | uniform | logit_normal_quantiles

inline constexpr int64_t kMostSamplingSteps = 100'000;

struct SamplingConfig {
  SamplerKind sampler = SamplerKind::kSde;
  int64_t steps = 32;
  double gamma = 1.5;  // of the SDE; 0 = the ODE
  SdeUpdate sde_update = SdeUpdate::kPublished;
  double self_cond_cfg = 3.0;          // w; 1 for conditional tasks
  double cfg = 1.0;                    // guidance on the condition; 2 published for conditional tasks
  std::string self_cond_cfg_schedule;  // "" = self_cond_cfg at every t; else as in config/schedules.h
  std::string cfg_schedule;            // "" = cfg at every t; else as in config/schedules.h
  TimeGrid time_schedule = TimeGrid::kLogitNormal;
  std::string times;     // "" = `steps` times of time_schedule; else a list, as in config/schedules.h
  double p_mean = -1.5;  // of the logit-normal grids
  double p_std = 0.8;
  uint64_t seed = 0;
  int64_t batch_size = 64;  // rows at a time, at most; the result does not depend on it
  bool cuda_graph = true;  // on CUDA a network call is recorded once and replayed; nor does it depend on this

  bool operator==(const SamplingConfig&) const = default;
};

}  // namespace elf
