// The rounds of a distillation: each is a run of its own with one round in its configuration, so that it can
// be resumed, sampled and exported like any other run.
#pragma once

#include <cstdint>

#include "elf/config/run_config.h"
#include "elf/flow/distillation.h"

namespace elf {

// Of a configuration with one round.
DistillationRound distillation_round(const DistillationConfig& config);

// The configuration of round `index`. Of several rounds each gets a folder train.out/steps-N, N being the
// student's steps, and starts from the averages of the round before (the first: train.init_from, else the
// teacher); one alone keeps train.out. Its sampling: section is that of few steps: steps, gamma and
// self_cond_cfg of the round, so that elf-sample uses them unasked.
RunConfig round_config(const RunConfig& config, size_t index);

}  // namespace elf
