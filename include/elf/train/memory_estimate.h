// How much memory a rank needs, from the sizes alone: what a --dry-run prints.
#pragma once

#include <cstdint>

#include "elf/config/run_config.h"

namespace elf {

struct MemoryEstimate {
  double program = 0;      // code, libraries, allocator, in bytes like all below
  double states = 0;       // weights, their averages (twice: one network runs on them), momenta, gradients
  double activations = 0;  // kept for the backward pass of one micro-batch, and its largest temporaries
  double updates = 0;      // temporaries of the optimiser
  double saving = 0;       // the copy that is written in the background ...
  bool saves_while_training = false;  // ... beside the activations of the next steps
  // Activations are freed before the optimiser begins.
  double gib() const;
};

// `config` must be resolved (vocab_size, lengths).
MemoryEstimate estimate_memory(const RunConfig& config, int64_t parameters, int64_t ranks);

}  // namespace elf
