// The one batch type: token ids and which positions mean what. Condition first, then target, then padding.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace elf {

struct Batch {
  at::Tensor ids;         // [B, L] int64, padded with the pad id (pad_token: pad) or EOS (pad_token: eos)
  at::Tensor valid_mask;  // [B, L] bool: condition or target, not padding
  at::Tensor cond_mask;   // [B, L] bool: condition
  std::vector<int64_t> samples;  // [B] index of each row in its optimiser step: the key of its random draws
  std::vector<int64_t> rows;     // [B] index of each row in the dataset, for messages

  int64_t size() const { return ids.size(0); }
  int64_t length() const { return ids.size(1); }
};

}  // namespace elf
