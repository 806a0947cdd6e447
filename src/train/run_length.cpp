#include "run_length.h"

#include <algorithm>
#include <cmath>

#include "elf/base/error.h"
#include "elf/base/log.h"

namespace elf {
namespace {

// So many steps are timed, the first few left out; fewer when they take long.
constexpr int64_t kWarmup = 5, kTimedSteps = 50, kFewestTimedSteps = 2;
constexpr double kShare = 0.1;  // of the minutes

}  // namespace

void RunLength::before_step(RunState& state) {
  if (minutes_ == 0 || state.total_steps > 0) return;
  state.total_steps = static_cast<int64_t>(ranks_.of_first(static_cast<double>(steps_from(state))));
}

// 0: not known yet.
int64_t RunLength::steps_from(const RunState& state) {
  if (first_ < 0) first_ = state.step + kWarmup;
  if (state.step <= first_) {
    start_ = Clock::now();
    return 0;
  }
  const int64_t timed = state.step - first_;
  const double budget = minutes_ * 60, spent = std::chrono::duration<double>(Clock::now() - start_).count();
  if (timed < kFewestTimedSteps || (timed < kTimedSteps && spent < kShare * budget)) return 0;
  const double step_seconds = spent / static_cast<double>(timed);
  const double left = std::max(0.0, budget - state.trained_seconds);
  const int64_t total = state.step + 1 + static_cast<int64_t>(left / step_seconds);
  if (ranks_.first())
    log_info(cat("a step takes ", std::llround(step_seconds * 1000), " ms: ", total, " steps in ", minutes_,
                 " minutes"));
  return total;
}

}  // namespace elf
