// Timing that can be compared: rounds of one piece of work, a matrix product of known size before each of
// them, medians.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace elf {

// What one round did, in floating-point operations that the mathematics needs (model/flops.h), and which of
// its phases did it: their share of the machine's rate is the utilisation. Without phases: the whole round.
struct RoundWork {
  double flops = 0;
  std::vector<std::string> phases;
};

struct SpeedReport {
  std::vector<double> seconds;                        // of each round
  std::map<std::string, std::vector<double>> phases;  // seconds by phase and round; 0 where it did not run
  std::vector<double> gflop;                          // of each round
  std::vector<double> utilisation;                    // of each round, in its phases that do the work
  double gemm_gflops = 0;                             // GFLOP/s of the matrix products between the rounds
  double peak_memory_mib = 0;                         // of the process (CPU) or of its tensors (GPU)
};

// Runs `round` once to warm up (round 0) and then `rounds` times (1 ... rounds). Waits for the device
// before each reading of the clock.
SpeedReport measure_rounds(int64_t rounds, at::Device device, at::ScalarType precision,
                           const std::function<RoundWork(int64_t round)>& round);

// seconds_median, seconds, phases_median, gemm_gflops, model_gflop, utilisation, utilisation_whole,
// peak_rss_mib, and tokens_per_second of `tokens` a round: names as bench/peer.py prints them.
nlohmann::ordered_json to_json(const SpeedReport& report, double tokens);

// The middle one, or the mean of the middle two; 0 of none.
double median(std::vector<double> values);

// GFLOP/s of a square matrix product, now.
double gemm_rate(at::Device device, at::ScalarType precision);

// Of this process, since it began.
double peak_rss_mib();

}  // namespace elf
