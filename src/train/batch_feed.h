// The micro-batches of this rank, read ahead by one step.
#pragma once

#include <future>
#include <vector>

#include "elf/data/loader.h"

namespace elf {

class BatchFeed {
 public:
  // This rank's share of a global batch: a run of slots, as equal as can be. micro 0: all of it in one batch.
  BatchFeed(const Loader& loader, int64_t micro, int64_t rank, int64_t ranks);

  // The batches of `step`; those of the step after are read while it is computed.
  std::vector<Batch> next(int64_t step);
  double waited_seconds() const { return waited_; }  // so far, for data

 private:
  std::vector<Batch> read(int64_t step) const;

  const Loader& loader_;
  int64_t micro_, first_, end_;
  int64_t ahead_step_ = -1;
  std::future<std::vector<Batch>> ahead_;
  double waited_ = 0;
};

}  // namespace elf
