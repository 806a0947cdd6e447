// What a person watching a run sees: metrics.jsonl, TensorBoard, one log line an interval, a bar on a
// terminal. Only the first rank has one.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "elf/base/progress.h"
#include "elf/train/event_file.h"
#include "elf/train/metrics_log.h"
#include "elf/train/run_plan.h"
#include "elf/train/run_state.h"
#include "elf/train/train_step.h"

namespace elf {

class Reporter {
 public:
  // Continues the files of `folder` behind `step`.
  Reporter(const RunPlan& plan, at::Device device, int64_t ranks, const std::filesystem::path& folder,
           int64_t step);

  // After every step. `waited`: seconds this run has waited for data so far. `due`: a line is to be written.
  void after_step(const RunState& state, const StepReport& report, double lr, double waited, bool due);
  // Time since the last line that was not training (validation, saving) does not count as such.
  void restart_clock();
  // Figures of a validation, of samples or of the hook: a line of their own.
  void figures(const RunState& state, const nlohmann::ordered_json& figures);
  void samples(int64_t step, const std::vector<std::string>& texts);
  void finish(const RunState& state);

 private:
  using Clock = std::chrono::steady_clock;
  void line(const RunState& state, const StepReport& report, double lr, double waited);
  void write(int64_t step, const nlohmann::ordered_json& figures);
  void warn_of_waiting(int64_t step, double share);
  double epoch(int64_t step) const;

  RunPlan plan_;
  at::Device device_;
  double peak_flops_;  // of all ranks, measured
  MetricsLog metrics_;
  std::optional<EventFile> events_;
  std::optional<Progress> bar_;  // on a terminal only
  Clock::time_point last_line_ = Clock::now();
  int64_t steps_since_line_ = 0;
  double waited_before_ = 0;
  int64_t waiting_told_ = -1;
};

// "0.1235", and json null for what is not finite.
std::string short_number(double value, const char* format = "%.4g");
nlohmann::json finite_or_null(double value);

// Largest memory so far: of the process on the CPU, of LibTorch's allocator on CUDA.
double peak_memory_mib(at::Device device);

}  // namespace elf
