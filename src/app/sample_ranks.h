// The processes that share the work of elf-sample, under torchrun, Slurm or MPI; or one alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "elf/dist/ranks.h"
#include "sample_engine.h"

namespace elf::app {

class SampleRanks {
 public:
  // Meets the other processes that the environment speaks of. `job` must be the same text on all of them.
  SampleRanks(const Launch& launch, const std::string& job);

  int64_t rank() const { return ranks_.rank(); }
  int64_t size() const { return ranks_.size(); }
  bool first() const { return ranks_.first(); }

  // What every rank made, in the order of the ranks, on all of them.
  std::vector<MadeSamples> gather(MadeSamples mine);
  int64_t of_first(int64_t value) {
    return static_cast<int64_t>(ranks_.of_first(static_cast<double>(value)));
  }
  void give_up(const std::string& message) noexcept { ranks_.give_up(message); }

 private:
  Ranks ranks_;
};

}  // namespace elf::app
