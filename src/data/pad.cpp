#include "elf/data/pad.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "elf/base/error.h"
#include "elf/tensor/random.h"

namespace elf {

Batch make_batch(const std::vector<std::vector<int32_t>>& ids, const std::vector<int64_t>& cond_lengths,
                 int64_t length, int64_t pad_id) {
  if (ids.size() != cond_lengths.size())
    usage_error(ids.size(), " token lists, but ", cond_lengths.size(), " condition lengths");
  const auto rows = static_cast<int64_t>(ids.size());
  Batch batch;
  batch.ids = at::full({rows, length}, pad_id, at::kLong);
  batch.valid_mask = at::zeros({rows, length}, at::kBool);
  batch.cond_mask = at::zeros({rows, length}, at::kBool);
  batch.samples = batch.rows = sample_range(0, rows);
  for (int64_t b = 0; b < rows; ++b) {
    const std::vector<int32_t>& row = ids[b];
    const auto count = static_cast<int64_t>(row.size());
    if (count > length) usage_error("row ", b, " has ", count, " tokens, more than the length ", length);
    if (cond_lengths[b] < 0 || cond_lengths[b] > count) {
      usage_error("row ", b, ": a condition of ", cond_lengths[b], " tokens in a row of ", count);
    }
    std::copy(row.begin(), row.end(), batch.ids.data_ptr<int64_t>() + b * length);
    std::fill_n(batch.valid_mask.data_ptr<bool>() + b * length, count, true);
    std::fill_n(batch.cond_mask.data_ptr<bool>() + b * length, cond_lengths[b], true);
  }
  return batch;
}

}  // namespace elf
