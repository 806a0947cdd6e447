// How many steps a run of train.minutes has: measured on its first ones, then fixed.
#pragma once

#include <chrono>
#include <cstdint>

#include "elf/dist/ranks.h"
#include "elf/train/run_state.h"

namespace elf {

class RunLength {
 public:
  // minutes 0: the length is known already, and nothing is done.
  RunLength(double minutes, Ranks& ranks) : minutes_(minutes), ranks_(ranks) {}

  // Before each step; sets state.total_steps once, to the same number on all ranks, by the first rank's
  // clock.
  void before_step(RunState& state);

 private:
  int64_t steps_from(const RunState& state);

  using Clock = std::chrono::steady_clock;
  double minutes_;
  Ranks& ranks_;
  Clock::time_point start_;
  int64_t first_ = -1;
};

}  // namespace elf
