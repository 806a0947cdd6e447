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
  // Filled by hand: this runs in threads that only read, where LibTorch would start a pool for every large
  // fill.
  batch.ids = at::empty({rows, length}, at::kLong);
  batch.valid_mask = at::empty({rows, length}, at::kBool);
  batch.cond_mask = at::empty({rows, length}, at::kBool);
  batch.samples = batch.rows = sample_range(0, rows);
  for (int64_t b = 0; b < rows; ++b) {
    const std::vector<int32_t>& row = ids[b];
    const auto count = static_cast<int64_t>(row.size());
    if (count > length) usage_error("row ", b, " has ", count, " tokens, more than the length ", length);
    if (cond_lengths[b] < 0 || cond_lengths[b] > count) {
      usage_error("row ", b, ": a condition of ", cond_lengths[b], " tokens in a row of ", count);
    }
    int64_t* ids_of_row = batch.ids.data_ptr<int64_t>() + b * length;
    std::fill(std::copy(row.begin(), row.end(), ids_of_row), ids_of_row + length, pad_id);
    const auto fill_mask = [&](at::Tensor& mask, int64_t set) {
      bool* of_row = mask.data_ptr<bool>() + b * length;
      std::fill(std::fill_n(of_row, set, true), of_row + length, false);
    };
    fill_mask(batch.valid_mask, count);
    fill_mask(batch.cond_mask, cond_lengths[b]);
  }
  return batch;
}

}  // namespace elf
