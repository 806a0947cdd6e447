// The samplers: each is one step of the walk, in a file of its own (sampler_NAME.cpp), and one line of
// kSamplers. The loop (sampler.cpp) makes the last step by step_ode, whatever the sampler.
#pragma once

#include <iterator>

#include "elf/config/enum_names.h"
#include "elf/config/sampling_config.h"
#include "walk.h"

namespace elf {

// Takes `s` from walk.time(k) to walk.time(k + 1): z becomes the new state (condition positions need no
// care), x_hat the prediction that the next step has as its self-condition.
using SamplerStepFunction = void (*)(SamplerWalk& walk, SamplerState& s, int64_t k);

void step_ode(SamplerWalk& walk, SamplerState& s, int64_t k);
void step_sde(SamplerWalk& walk, SamplerState& s, int64_t k);
void step_heun(SamplerWalk& walk, SamplerState& s, int64_t k);
void step_multistep(SamplerWalk& walk, SamplerState& s, int64_t k);

struct Sampler {
  SamplerKind kind;
  SamplerStepFunction step;
  int predictions;  // of a step
};

inline constexpr Sampler kSamplers[] = {{SamplerKind::kSde, step_sde, 1},
                                        {SamplerKind::kOde, step_ode, 1},
                                        {SamplerKind::kHeun, step_heun, 2},
                                        {SamplerKind::kMultistep, step_multistep, 1}};

static_assert(std::size(kSamplers) == std::size(kSamplerKindNames), "a sampler has a name and a line here");

}  // namespace elf
