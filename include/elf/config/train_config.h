// `train:` how long, how much at a time, what is logged and saved.
#pragma once

#include <cstdint>
#include <string>

namespace elf {

struct TrainConfig {
  std::string out = "runs/elf";  // run folder
  uint64_t seed = 0;
  int64_t global_batch_size = 512;  // rows of one optimiser step
  int64_t micro_batch_size =
      0;               // rows of one forward; 0 = the whole step at once. The result does not depend on it
  double epochs = 5;   // length of the run, unless steps or minutes is given
  int64_t steps = 0;   // > 0: this many optimiser steps
  double minutes = 0;  // > 0: as many steps as fit, by the measured time of the first ones; the number is
                       // then fixed and saved
  int64_t log_every = 50;         // steps
  int64_t valid_every = 1000;     // 0 = only at the end
  int64_t valid_batches = 0;      // 0 = the whole validation set
  int64_t save_every = 1000;      // 0 = only at the end
  int64_t keep_last = 2;          // checkpoints kept beside the best
  int64_t max_skipped_steps = 3;  // non-finite steps in a row that end the run

  bool operator==(const TrainConfig&) const = default;
};

}  // namespace elf
