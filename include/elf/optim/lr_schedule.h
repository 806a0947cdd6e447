// The learning rate of every optimiser step.
#pragma once

#include <cstdint>

#include "elf/config/optimizer_config.h"

namespace elf {

// The peak: config.lr when it is positive, else blr * global_batch / 256, `global_batch` being the rows of
// one optimiser step.
double peak_learning_rate(const OptimizerConfig& config, int64_t global_batch);

// Rate of the step that follows `step` finished ones (0 for the first): peak * step / warmup_steps below
// warmup_steps, so the first step of a warm-up has lr 0; then constant, or from the peak (at warmup_steps) by
// a half cosine or a line to min_lr (at total_steps and after).
double learning_rate(const OptimizerConfig& config, int64_t global_batch, int64_t step, int64_t total_steps,
                     int64_t warmup_steps);

}  // namespace elf
