#include "batch_feed.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "elf/base/error.h"
#include "faults.h"

namespace elf {

BatchFeed::BatchFeed(const Loader& loader, int64_t micro, int64_t rank, int64_t ranks) : loader_(loader) {
  const int64_t rows = loader.config().global_batch;
  if (rows < ranks) {
    usage_error("train.global_batch_size is ", rows, ", but there are ", ranks,
                " ranks: each needs a row of every step; start fewer processes or raise it");
  }
  first_ = rank * rows / ranks;
  end_ = (rank + 1) * rows / ranks;
  micro_ = micro > 0 ? micro : end_ - first_;
}

std::vector<Batch> BatchFeed::read(int64_t step) const {
  fault_point("reader", step + 1);
  std::vector<Batch> batches;
  for (int64_t slot = first_; slot < end_; slot += micro_)
    batches.push_back(loader_.batch(step, slot, std::min(micro_, end_ - slot)));
  return batches;
}

std::vector<Batch> BatchFeed::next(int64_t step) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Batch> batches = ahead_.valid() && ahead_step_ == step ? ahead_.get() : read(step);
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ahead_step_ = step + 1;
  try {
    ahead_ = std::async(std::launch::async, [this, step] { return read(step + 1); });
  } catch (const std::system_error&) {  // a limit on processes: the next call reads
    ahead_ = {};
  }
  return batches;
}

}  // namespace elf
