#include "elf/optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace elf {

double peak_learning_rate(const OptimizerConfig& config, int64_t global_batch) {
  return config.lr > 0 ? config.lr : config.blr * static_cast<double>(global_batch) / 256.0;
}

double learning_rate(const OptimizerConfig& config, int64_t global_batch, int64_t step, int64_t total_steps,
                     int64_t warmup_steps) {
  const double peak = peak_learning_rate(config, global_batch);
  if (step < warmup_steps) return peak * static_cast<double>(step) / static_cast<double>(warmup_steps);
  const int64_t span = std::max<int64_t>(1, total_steps - warmup_steps);
  const double progress = std::min(1.0, static_cast<double>(step - warmup_steps) / static_cast<double>(span));
  switch (config.schedule) {
    case LrSchedule::kConstant:
      return peak;
    case LrSchedule::kLinear:
      return peak + (config.min_lr - peak) * progress;
    case LrSchedule::kCosine:
      break;
  }
  return config.min_lr + (peak - config.min_lr) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

}  // namespace elf
