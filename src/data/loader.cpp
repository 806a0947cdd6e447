#include "elf/data/loader.h"

#include "elf/base/error.h"
#include "elf/data/pad.h"
#include "elf/data/permutation.h"
#include "elf/tensor/random.h"

namespace elf {
namespace {

Batch batch_of(const Dataset& dataset, const std::vector<int64_t>& rows, int64_t length, int64_t pad_id) {
  std::vector<std::vector<int32_t>> ids;
  std::vector<int64_t> cond_lengths;
  for (const int64_t row : rows) {
    ids.push_back(dataset.tokens(row));
    cond_lengths.push_back(dataset.cond_length(row));
  }
  Batch batch = make_batch(ids, cond_lengths, length, pad_id);
  batch.rows = rows;
  return batch;
}

int64_t checked_length(const DatasetInfo& info, int64_t length) {
  if (length == 0) return info.max_length;
  if (length < info.longest_row) {
    usage_error(info.path.string(), ": its longest row has ", info.longest_row,
                " tokens, more than the length ", length, " asked for; prepare it with --max-length ",
                length);
  }
  return length;
}

}  // namespace

Loader::Loader(std::shared_ptr<const Dataset> dataset, const LoaderConfig& config)
    : dataset_(std::move(dataset)), config_(config) {
  const DatasetInfo& info = dataset_->info();
  if (config_.global_batch < 1) usage_error("a batch of ", config_.global_batch, " rows");
  if (info.rows < config_.global_batch) {
    usage_error(info.path.string(), ": ", info.rows, " rows, fewer than one global batch of ",
                config_.global_batch);
  }
  config_.length = checked_length(info, config_.length);
}

double Loader::steps_per_epoch() const {
  return static_cast<double>(dataset_->info().rows) / static_cast<double>(config_.global_batch);
}

int64_t Loader::row_of(int64_t step, int64_t slot) const {
  const int64_t n = dataset_->info().rows, g = step * config_.global_batch + slot;
  return Permutation(n, config_.seed, static_cast<uint64_t>(g / n))(g % n);
}

Batch Loader::batch(int64_t step, int64_t first_slot, int64_t count) const {
  if (step < 0 || first_slot < 0 || count < 0 || first_slot + count > config_.global_batch) {
    usage_error("slots ", first_slot, " to ", first_slot + count, " of step ", step,
                " with a global batch of ", config_.global_batch);
  }
  std::vector<int64_t> rows;
  for (int64_t slot = first_slot; slot < first_slot + count; ++slot) rows.push_back(row_of(step, slot));
  Batch batch = batch_of(*dataset_, rows, config_.length, config_.pad_id);
  batch.samples = sample_range(first_slot, count);
  return batch;
}

Batch sequential_batch(const Dataset& dataset, int64_t first_row, int64_t count, int64_t length,
                       int64_t pad_id) {
  Batch batch =
      batch_of(dataset, sample_range(first_row, count), checked_length(dataset.info(), length), pad_id);
  batch.samples = batch.rows;
  return batch;
}

}  // namespace elf
