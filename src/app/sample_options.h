// The command line of elf-sample: what was asked, checked, and the sampler settings that follow from it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli.h"
#include "elf/config/sampling_config.h"

namespace elf::app {

// Sample numbers stay below this, so that candidates of one input can have numbers of their own above it.
inline constexpr int64_t kMostSamples = int64_t{1} << 40;

struct SampleOptions {
  CommonOptions common;
  std::string model, input, infill, field, output, format, trajectory, weights = "ema";
  std::string long_input = "truncate", infill_method = "path", choose = "bleu";
  std::optional<int64_t> num_samples, batch_size;
  int64_t first_index = 0, num_candidates = 1, free_gap = 8;
  double max_wait = 0.1, watch_delay = 0.1;
  bool clean_up = false, watch = false, resume = false, no_graph = false;
  // Sampler settings as typed, by the option's name without dashes: "steps" -> "32".
  std::map<std::string, std::string> settings;
  std::vector<std::string> sweep;  // "sc-cfg=1,2,3"

  bool jsonl() const;
  // The texts that are read: --input or --infill; "" for --num-samples.
  const std::string& source() const { return infill.empty() ? input : infill; }
};

void add_sample_options(Command& app, SampleOptions& options);

// Throws Error (usage) for what does not go together or is out of range; before any work.
void check_sample_options(const SampleOptions& options);

// One combination of a sweep.
struct SweepPoint {
  SamplingConfig config;
  std::vector<std::pair<std::string, std::string>> values;  // ("sc-cfg", "2"), ...; empty without a sweep
  // "samples.jsonl" -> "samples.sc-cfg=2.steps=16.jsonl"
  std::string file(const std::string& output) const;
};

// The settings of the model with those of the command line over them; all combinations of --sweep, the last
// option running fastest. Throws Error (usage).
std::vector<SweepPoint> sweep_points(const SamplingConfig& of_model, const SampleOptions& options);

}  // namespace elf::app
