// The rounds of elf-train with train.objective: distillation, one after the other, and the table that ends
// them.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <string>
#include <vector>

#include "elf/config/run_config.h"

namespace elf::app {

// One row of the table: who sampled how, and how its texts score.
struct DistillationRow {
  std::string model;  // "teacher" or "student"
  int64_t steps = 0;
  double gamma = 0, self_cond_cfg = 0;
  std::string weights_hash;
  double perplexity = 0;  // under the n-gram model; 0 = not scored
  double entropy = 0, corpus_entropy = 0, distinct2 = 0;
  int64_t samples = 0, blank = 0;
  int64_t train_steps = 0;  // of the round; 0 for the teacher
  double train_seconds = 0;
};

// Trains the rounds in order; `train` runs one configuration to its end and returns false when a signal
// stopped it. `stop` is asked after each round that is not the end (of the rounds, or a table follows).
// True when all are done. A round that is complete costs the time of looking at it.
bool train_rounds(const RunConfig& config, const std::function<bool(const RunConfig&)>& train,
                  const std::function<bool()>& stop);

// Samples and scores the teacher at its own number of steps (those of one student step times the rounds'
// steps) and at each round's, and each round's student with the settings stored in its run. Writes
// rounds.json and rounds.md into train.out and returns the text of the latter. Rows that rounds.json holds
// already are not made again.
std::string evaluate_rounds(const RunConfig& config, at::Device device);

// Markdown: a line a row, those of equal steps together, the published row beside each.
std::string distillation_table(const std::vector<DistillationRow>& rows, const std::string& scorer);

}  // namespace elf::app
