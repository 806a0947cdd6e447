// The user's own command after a checkpoint.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace elf {

// Runs `command` by the shell, with ELF_RUN (run folder), ELF_STEP and ELF_CHECKPOINT (its folder) set, and
// returns the JSON object that it printed, or that is on the last line it printed; without one, {}. A command
// that fails is a warning.
nlohmann::ordered_json hook_figures(const std::string& command, const std::filesystem::path& run,
                                    int64_t step);

}  // namespace elf
