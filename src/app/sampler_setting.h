// One setting of the sampler as users type it: options of elf-sample, sweeps, settings of elf-eval and of ablations.
#pragma once

#include <string>

#include "elf/config/sampling_config.h"

namespace elf::app {

// `value` for the setting `name` (sampler, steps, gamma, sde-update, sc-cfg, cfg, time-schedule, times, seed).
// Throws Error (usage) naming `option`, where it was typed.
void apply_sampler_setting(SamplingConfig& config, const std::string& name, const std::string& value,
                           const std::string& option);

}  // namespace elf::app
