// Mean and standard deviation of a latent source's outputs, exact and in one pass, and the JSON file that
// holds them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace elf {

struct LatentStatistics {
  double mean = 0, std = 1;              // over all positions and channels
  at::Tensor channel_mean, channel_std;  // [D] f64
  int64_t positions = 0;                 // positions seen
  std::string source;                    // digest of the source with mean 0 and std 1
};

// Accumulates in float64; merging means and squared deviations, not sums of squares, so that a large mean
// costs no digits.
class StatisticsAccumulator {
 public:
  void add(const at::Tensor& rows);  // [n, D], any device
  // As if everything that `other` was given had been given to this one.
  void merge(const StatisticsAccumulator& other);
  LatentStatistics result()
      const;  // standard deviations of the population; throws Error (usage) when nothing was added

 private:
  int64_t count_ = 0;
  at::Tensor mean_, squares_;  // [D] f64: mean, sum of squared deviations
};

nlohmann::json to_json(const LatentStatistics& statistics);
// Throws Error (usage) naming file and key.
LatentStatistics read_statistics(const std::filesystem::path& file);

}  // namespace elf
