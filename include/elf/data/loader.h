// Batches of a dataset in a shuffled order that is a pure function of (seed, step, slot): no state to save,
// seeking is O(1), and any split of a step over ranks or micro-batches sees the same rows.
#pragma once

#include <cstdint>
#include <memory>

#include "elf/data/batch.h"
#include "elf/data/dataset.h"

namespace elf {

struct LoaderConfig {
  int64_t global_batch = 0;  // rows of an optimiser step, over all ranks and micro-batches
  int64_t length = 0;        // L of the batches; 0 = the dataset's max_length
  int64_t pad_id = 0;        // 0 (pad_token: pad) or EOS (pad_token: eos)
  uint64_t seed = 0;
};

// The stream of samples never ends: sample g = step * global_batch + slot is row permutation(g / n)(g % n) of
// the n rows. So each epoch shows every row once, and the remainder of an epoch begins the next one within
// the same step.
class Loader {
 public:
  // Throws Error (usage) naming both numbers: fewer rows than a global batch; a row longer than `length`.
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderConfig& config);

  const LoaderConfig& config() const { return config_; }
  const Dataset& dataset() const { return *dataset_; }
  double steps_per_epoch() const;

  // Rows first_slot .. first_slot + count - 1 of a step; 0 <= first_slot, first_slot + count <= global_batch.
  // Batch::samples are the slots.
  Batch batch(int64_t step, int64_t first_slot, int64_t count) const;
  // The row of a slot.
  int64_t row_of(int64_t step, int64_t slot) const;

 private:
  std::shared_ptr<const Dataset> dataset_;
  LoaderConfig config_;
};

// Rows first_row .. first_row + count - 1 in their order, for validation: Batch::samples are the rows. length
// 0 = the dataset's max_length.
Batch sequential_batch(const Dataset& dataset, int64_t first_row, int64_t count, int64_t length,
                       int64_t pad_id);

}  // namespace elf
