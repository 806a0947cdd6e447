// Sampling settings as a list of key=value, and their names in file names and tables.
#pragma once

#include <string>

#include "elf/config/sampling_config.h"
#include "eval_common.h"

namespace elf::app {

struct NamedSetting {
  std::string name;  // "sde-32-gamma1.5-w3": every value that differs between settings of one model
  SamplingConfig config;
};

// "steps=32,gamma=1.5,sc-cfg=3" over the model's own settings; "" leaves them as they are. Throws Error
// (usage) naming key and value.
NamedSetting parse_setting(const std::string& text, const SamplingConfig& of_model);
std::string setting_help();
// The setting as parse_setting reads it: over any model's own settings it gives the same samples.
std::string setting_text(const SamplingConfig& config);

}  // namespace elf::app
