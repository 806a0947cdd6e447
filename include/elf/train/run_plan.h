// From a configuration to a run that can start: what is taken from dataset and tokenizer, how many steps,
// what it needs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "elf/config/run_config.h"
#include "elf/data/dataset.h"
#include "elf/text/sentencepiece_tokenizer.h"

namespace elf {

struct RunPlan {
  RunConfig config;  // resolved: model.vocab_size, model.max_length, data lengths are set
  std::shared_ptr<const SentencePieceTokenizer> tokenizer;
  std::shared_ptr<const Dataset> train, valid;  // valid: null without one
  std::vector<std::string> missing;  // of a dry run: what is not there, "data.train FILE: no such file"

  int64_t parameters = 0;
  int64_t steps = 0;           // 0 = not known yet (train.minutes)
  double steps_per_epoch = 0;  // 0 without a dataset
  double tokens = 0;           // positions that pass through the network, all steps; 0 when steps is
  double memory_gib = 0;       // the most that a rank holds at a time (an estimate; see memory_estimate.h)
};

// Opens dataset and tokenizer, checks that they belong together, and resolves. With `data_may_be_missing` (a
// dry run on a machine without the data) what cannot be read is left out as long as the configuration names
// model.vocab_size and a length. Throws Error (usage).
RunPlan plan_run(const RunConfig& config, bool data_may_be_missing = false);

}  // namespace elf
