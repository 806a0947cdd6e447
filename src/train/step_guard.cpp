#include "step_guard.h"

#include <algorithm>
#include <cmath>

#include "elf/base/error.h"
#include "elf/base/log.h"

namespace elf {
namespace {

std::string list_of(const std::vector<int64_t>& rows) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, rows.size()); ++i) text += cat(i ? ", " : "", rows[i]);
  return rows.size() > kShown ? text + ", ..." : text;
}

}  // namespace

void StepGuard::check(const StepReport& report, RunState& state, const std::string& dataset,
                      int64_t last_saved) {
  if (report.finite) {
    state.skipped_in_a_row = 0;
    return watch_for_spikes(report, state.step);
  }
  ++state.skipped;
  ++state.skipped_in_a_row;
  const char* term = !std::isfinite(report.l2_loss)   ? "denoise loss"
                     : !std::isfinite(report.ce_loss) ? "decode loss"
                                                      : "gradient";
  const std::string rows =
      report.bad_rows.empty() ? "" : cat(" (rows ", list_of(report.bad_rows), " of ", dataset, ")");
  log_warning(cat("step ", state.step, ": the ", term, " is not finite", rows, "; the step is skipped (",
                  state.skipped_in_a_row, " in a row)"));
  if (state.skipped_in_a_row < config_.max_skipped_steps) return;
  numerical_error("step ", state.step, ": the ", term, " was not finite ", state.skipped_in_a_row,
                  " times in a row", rows, "; lower the learning rate; the last checkpoint is of step ",
                  last_saved);
}

void StepGuard::watch_for_spikes(const StepReport& report, int64_t step) {
  constexpr int64_t kSettled = 20;  // steps before the mean says something
  constexpr double kMemory = 0.95;
  if (config_.spike_factor > 0 && seen_ >= kSettled && report.loss > config_.spike_factor * mean_loss_) {
    log_warning(cat("step ", step, ": the loss jumped to ", report.loss, ", its running mean being ",
                    mean_loss_, " (gradient norm ", report.grad_norm, ")"));
  }
  mean_loss_ = seen_++ == 0 ? report.loss : kMemory * mean_loss_ + (1 - kMemory) * report.loss;
}

}  // namespace elf
