// What a run remembers besides tensors: a checkpoint's state.json.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "elf/config/train_config.h"

namespace elf {

// The best figure so far and how long ago it was.
class Best {
 public:
  explicit Best(const TrainConfig& config);

  // `figures`: what validation, samples or the hook said at `step`. True when train.best_metric is among
  // them and better than ever, and train.best_min_entropy is kept; without the metric nothing changes.
  bool offer(int64_t step, const nlohmann::json& figures);
  int64_t step() const { return step_; }  // 0: none yet
  double value() const { return value_; }
  int64_t stalled() const { return stalled_; }  // offers in a row that were not better
  bool out_of_patience() const { return patience_ > 0 && stalled_ >= patience_; }

  nlohmann::json to_json() const;
  // Takes over what to_json gave; with a warning nothing, when that was by another metric.
  void load(const nlohmann::json& saved);

 private:
  std::string metric_;
  bool lower_is_better_;
  double min_entropy_, value_ = 0;
  int64_t patience_, step_ = 0, stalled_ = 0;
};

// Losses, perplexities and error rates are better when lower, all else when higher.
bool lower_is_better(const std::string& metric);

struct RunState {
  int64_t step = 0;         // finished optimiser steps
  int64_t total_steps = 0;  // 0: not known yet (train.minutes)
  int64_t skipped = 0;      // non-finite ones among them
  int64_t skipped_in_a_row = 0;
  double trained_seconds = 0;
};

nlohmann::json to_json(const RunState& state);
RunState run_state_of(const nlohmann::json& saved);

}  // namespace elf
