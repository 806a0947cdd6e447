// One run: all sections together, read from YAML.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "elf/config/data_config.h"
#include "elf/config/distillation_config.h"
#include "elf/config/flow_config.h"
#include "elf/config/latents_config.h"
#include "elf/config/model_config.h"
#include "elf/config/optimizer_config.h"
#include "elf/config/sampling_config.h"
#include "elf/config/train_config.h"

namespace elf {

struct RunConfig {
  ModelConfig model;
  LatentsConfig latents;
  DataConfig data;
  FlowConfig flow;
  OptimizerConfig optimizer;
  TrainConfig train;
  DistillationConfig distillation;
  SamplingConfig sampling;

  bool operator==(const RunConfig&) const = default;
};

// Sizes of the published networks and of ours for small machines: elf-b, elf-m, elf-l, nano, small.
struct ModelPreset {
  std::string name;
  int64_t depth, hidden_size, num_heads;
};
const std::vector<ModelPreset>& model_presets();

// Reads `file` with its `base:` files (one name or a list; later wins; paths relative to the naming file),
// then the assignments "section.key=value" in order, and checks ranges and relations. Throws Error (usage)
// naming file, line, key, value found and what was expected; for an unknown key the nearest known one.
RunConfig load_run_config(const std::filesystem::path& file,
                          const std::vector<std::string>& assignments = {});

// From YAML text; `origin` stands for the file name in messages and `folder` for where relative paths start.
RunConfig parse_run_config(const std::string& yaml, const std::string& origin,
                           const std::filesystem::path& folder,
                           const std::vector<std::string>& assignments = {});

// YAML of every key with its value; reading it back gives an equal configuration.
std::string to_yaml(const RunConfig& config);

// The same as (dotted key, value text) pairs in order, for records and TensorBoard.
std::vector<std::pair<std::string, std::string>> flat_fields(const RunConfig& config);

// Markdown table of every key: type, default, range, meaning (docs/CONFIG.md and `elf-train --help-config`).
std::string describe_fields();

// Relations between fields ("model.num_heads 12 does not divide model.hidden_size 770"). Throws Error
// (usage).
void validate(const RunConfig& config);

}  // namespace elf
