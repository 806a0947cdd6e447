// What a training run does about numbers that go wrong.
#pragma once

#include <string>

#include "elf/train/run_state.h"
#include "elf/train/train_step.h"

namespace elf {

class StepGuard {
 public:
  explicit StepGuard(const TrainConfig& config) : config_(config) {}

  // After the step numbered state.step. Counts and reports a step that was not finite; throws Error
  // (numerical) naming step, term and dataset rows after train.max_skipped_steps in a row. Reports a loss
  // above train.spike_factor times its running mean.
  void check(const StepReport& report, RunState& state, const std::string& dataset, int64_t last_saved);

 private:
  void watch_for_spikes(const StepReport& report, int64_t step);

  const TrainConfig& config_;
  double mean_loss_ = 0;
  int64_t seen_ = 0;
};

}  // namespace elf
