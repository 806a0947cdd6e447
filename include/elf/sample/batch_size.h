// How many rows of sampling fit into memory.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "elf/config/run_config.h"

namespace elf {

// Bytes that may still be used on `device`: of the machine or, where it is less, of the process's control
// group; of a CUDA device what is free there. 0: not known.
int64_t available_memory(at::Device device);

// Rows of one batch that need at most half of `bytes` (0: as many as one likes), from 1. An upper estimate:
// the activations of one block, twice or four times over where guidance doubles the rows, and the sampler's
// states. `config` must be resolved.
int64_t rows_that_fit(const RunConfig& config, int64_t bytes);

}  // namespace elf
