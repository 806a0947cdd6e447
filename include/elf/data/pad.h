// Token lists to a padded Batch.
#pragma once

#include <cstdint>
#include <vector>

#include "elf/data/batch.h"

namespace elf {

// ids [B][<= length] and cond_lengths [B] -> a Batch of [B, length], padded on the right with pad_id; samples
// and rows are 0..B-1. Throws Error (usage) when a row is longer than `length` or a condition longer than its
// row.
Batch make_batch(const std::vector<std::vector<int32_t>>& ids, const std::vector<int64_t>& cond_lengths,
                 int64_t length, int64_t pad_id);

}  // namespace elf
