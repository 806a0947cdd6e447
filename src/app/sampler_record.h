// The sampling settings as records hold them: those of elf-sample and of elf-eval run.
#pragma once

#include <nlohmann/json.hpp>

#include "elf/config/flow_config.h"
#include "elf/config/sampling_config.h"

namespace elf::app {

nlohmann::ordered_json sampler_json(const SamplingConfig& config, const FlowConfig& flow);

}  // namespace elf::app
