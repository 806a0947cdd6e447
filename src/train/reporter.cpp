#include "reporter.h"

#include <ATen/ATen.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/model/flops.h"

namespace elf {
using json = nlohmann::json;
using nlohmann::ordered_json;
namespace {

constexpr double kMuchWaiting = 0.1;  // share of the time spent waiting for data that is worth a warning
constexpr int64_t kQuietLines = 20;   // lines between two such warnings

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// FLOP/s of a float32 matrix product on `device`, now.
double gemm_flops(at::Device device) {
  const int64_t n = device.is_cpu() ? 512 : 4096;
  const at::Tensor a = at::ones({n, n}, at::TensorOptions().device(device)), b = at::ones_like(a);
  at::mm(a, b).sum().item();
  const auto start = std::chrono::steady_clock::now();
  const int repeats = 10;
  at::Tensor c;
  for (int i = 0; i < repeats; ++i) c = at::mm(a, b);
  c.sum().item();
  return repeats * 2.0 * static_cast<double>(n * n * n) / seconds_since(start);
}

std::string thousands(double value) {
  return value >= 1e6 ? short_number(value / 1e6, "%.2fM") : short_number(value / 1e3, "%.1fk");
}

}  // namespace

std::string short_number(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

json finite_or_null(double value) {
  return std::isfinite(value) ? json(value) : json(nullptr);
}

double peak_memory_mib(at::Device device) {
  if (device.is_cuda()) {
    const auto stats = at::getDeviceAllocator(at::kCUDA)->getDeviceStats(device.index());
    return static_cast<double>(stats.allocated_bytes[0].peak) / (1024.0 * 1024);
  }
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

Reporter::Reporter(const RunPlan& plan, at::Device device, int64_t ranks, const std::filesystem::path& folder,
                   int64_t step)
    : plan_(plan),
      device_(device),
      peak_flops_(gemm_flops(device) * static_cast<double>(ranks)),
      metrics_(folder / "metrics.jsonl", step) {
  if (::isatty(2) != 0) bar_.emplace("training", plan.steps, "steps");
  if (!plan.config.train.tensorboard) return;
  events_.emplace(folder / "tensorboard", step);
  if (step > 0) return;
  events_->text("configuration", 0, "```yaml\n" + to_yaml(plan.config) + "```\n");
  events_->flush();
}

double Reporter::epoch(int64_t step) const {
  return static_cast<double>(step) / plan_.steps_per_epoch;
}

void Reporter::after_step(const RunState& state, const StepReport& report, double lr, double waited,
                          bool due) {
  ++steps_since_line_;
  if (due) line(state, report, lr, waited);
  if (!bar_) return;
  bar_->set_total(state.total_steps);
  bar_->update(state.step, cat("loss ", short_number(report.loss)));
}

void Reporter::restart_clock() {
  last_line_ = Clock::now();
  steps_since_line_ = 0;
}

void Reporter::line(const RunState& state, const StepReport& report, double lr, double waited) {
  const TrainConfig& train = plan_.config.train;
  const double seconds = seconds_since(last_line_), steps = static_cast<double>(steps_since_line_);
  const double step_seconds = seconds / steps;
  const double rows_per_second = static_cast<double>(train.global_batch_size) / step_seconds;
  const double tokens_per_second = rows_per_second * static_cast<double>(plan_.config.data.max_length);
  const double flops = training_flops(plan_.config.model, plan_.config.flow, plan_.config.data.max_length);
  const double mfu = flops * rows_per_second / peak_flops_;
  const double wait_share = (waited - waited_before_) / seconds, memory = peak_memory_mib(device_);
  write(state.step, {{"step", state.step},
                     {"epoch", epoch(state.step)},
                     {"loss", finite_or_null(report.loss)},
                     {"l2_loss", finite_or_null(report.l2_loss)},
                     {"ce_loss", finite_or_null(report.ce_loss)},
                     {"accuracy", report.accuracy},
                     {"lr", lr},
                     {"grad_norm", finite_or_null(report.grad_norm)},
                     {"tokens_per_second", tokens_per_second},
                     {"mfu", mfu},
                     {"data_wait", wait_share},
                     {"pad_fraction", report.pad_fraction},
                     {"skipped_steps", state.skipped},
                     {"peak_memory_mib", memory}});
  const double left = static_cast<double>(state.total_steps - state.step) * step_seconds;
  log_info(cat("step ", state.step, state.total_steps > 0 ? cat("/", state.total_steps) : "", ", epoch ",
               short_number(epoch(state.step), "%.2f"), ": loss ", short_number(report.loss), " (denoise ",
               short_number(report.l2_loss), ", decode ", short_number(report.ce_loss), "), lr ",
               short_number(lr, "%.2e"), ", gradient ", short_number(report.grad_norm, "%.3g"), ", ",
               thousands(tokens_per_second), " tokens/s, MFU ", short_number(100 * mfu, "%.0f"), " %, ",
               short_number(memory / 1024, "%.2f"), " GiB",
               state.total_steps > 0 ? ", " + duration_text(left) + " left" : ""));
  warn_of_waiting(state.step, wait_share);
  waited_before_ = waited;
  restart_clock();
}

void Reporter::warn_of_waiting(int64_t step, double share) {
  const int64_t every = kQuietLines * plan_.config.train.log_every;
  if (share < kMuchWaiting || (waiting_told_ >= 0 && step - waiting_told_ < every)) return;
  waiting_told_ = step;
  log_warning(
      cat("step ", step, ": ", short_number(100 * share, "%.0f"),
          " % of the time went into waiting for data; is the dataset on a slow disk, or are the cores "
          "busy?"));
}

void Reporter::figures(const RunState& state, const ordered_json& figures) {
  ordered_json line = {{"step", state.step}, {"epoch", epoch(state.step)}};
  line.update(figures);
  write(state.step, line);
}

void Reporter::write(int64_t step, const ordered_json& figures) {
  metrics_.write(figures);
  if (!events_) return;
  for (const auto& [name, value] : figures.items()) {
    if (name == "step" || !value.is_number()) continue;
    const char* group = name.starts_with("valid_")    ? "valid/"
                        : name.starts_with("sample_") ? "sample/"
                                                      : "train/";
    const size_t cut = name.starts_with("valid_") || name.starts_with("sample_") ? name.find('_') + 1 : 0;
    events_->scalar(group + name.substr(cut), step, value.get<double>());
  }
  events_->flush();
}

void Reporter::samples(int64_t step, const std::vector<std::string>& texts) {
  if (!events_) return;
  std::string list;
  for (const std::string& text : texts) list += "- " + text + "\n";
  events_->text("samples", step, list);
  events_->flush();
}

void Reporter::finish(const RunState& state) {
  if (bar_ && state.step > 0) bar_->update(state.step);
  bar_.reset();
}

}  // namespace elf
