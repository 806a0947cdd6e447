#include "elf/train/run_state.h"

#include <cmath>

#include "elf/base/error.h"
#include "elf/base/log.h"

namespace elf {
using json = nlohmann::json;

bool lower_is_better(const std::string& metric) {
  for (const char* part : {"loss", "ppl", "perplexity", "nll", "ter", "cer", "wer", "error"}) {
    if (metric.find(part) != std::string::npos) return true;
  }
  return false;
}

Best::Best(const TrainConfig& config)
    : metric_(config.best_metric),
      lower_is_better_(lower_is_better(config.best_metric)),
      min_entropy_(config.best_min_entropy),
      patience_(config.patience) {}

bool Best::offer(int64_t step, const json& figures) {
  if (!figures.contains(metric_)) return false;
  const json& figure = figures.at(metric_);
  const double value = figure.is_number() ? figure.get<double>() : std::nan("");
  bool better = std::isfinite(value) && (step_ == 0 || (lower_is_better_ ? value < value_ : value > value_));
  if (better && min_entropy_ > 0) {
    const json entropy = figures.value("sample_entropy", figures.value("entropy", json(nullptr)));
    better = entropy.is_number() && entropy.get<double>() >= min_entropy_;
    if (!better) {
      log_warning(cat("step ", step, ": ", metric_, " ", value,
                      " does not count as best: the entropy of the "
                      "samples is ",
                      entropy.dump(), ", below train.best_min_entropy ", min_entropy_));
    }
  }
  stalled_ = better ? 0 : stalled_ + 1;
  if (!better) return false;
  value_ = value;
  step_ = step;
  return true;
}

json Best::to_json() const {
  return {{"metric", metric_},
          {"lower_is_better", lower_is_better_},
          {"value", step_ > 0 ? json(value_) : json(nullptr)},
          {"step", step_},
          {"stalled", stalled_}};
}

void Best::load(const json& saved) {
  const std::string metric = saved.value("metric", "");
  if (metric != metric_) {
    if (!metric.empty())
      log_warning(
          cat("the best so far was by ", metric, "; it starts anew with train.best_metric ", metric_));
    return;
  }
  step_ = saved.value("step", int64_t{0});
  stalled_ = saved.value("stalled", int64_t{0});
  if (saved.at("value").is_number()) value_ = saved.at("value").get<double>();
}

json to_json(const RunState& state) {
  return {{"step", state.step},
          {"total_steps", state.total_steps},
          {"skipped_steps", state.skipped},
          {"skipped_in_a_row", state.skipped_in_a_row},
          {"trained_seconds", state.trained_seconds}};
}

RunState run_state_of(const json& saved) {
  return {.step = saved.at("step").get<int64_t>(),
          .total_steps = saved.at("total_steps").get<int64_t>(),
          .skipped = saved.at("skipped_steps").get<int64_t>(),
          .skipped_in_a_row = saved.value("skipped_in_a_row", int64_t{0}),
          .trained_seconds = saved.at("trained_seconds").get<double>()};
}

}  // namespace elf
