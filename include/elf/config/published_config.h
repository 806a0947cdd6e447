// Configurations of the published implementation, for taking its weights over.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "elf/config/run_config.h"

namespace elf {

// What `file` says, in one of three forms: a configuration of ours (YAML with sections); a flat YAML with the
// published names (max_length, latent_std, denoiser_p_mean, ...; names without a meaning here are left out
// and logged); JSON with the sizes of networks, {"dims": {...}} or {"name": {"dims": {...}}, ...}: then one
// configuration a network, in the order of their names. `assignments` ("section.key=value") win. Throws Error
// (usage) naming file and key.
std::vector<RunConfig> load_published_config(const std::filesystem::path& file,
                                             const std::vector<std::string>& assignments = {});

// The settings that the published checkpoints were trained with, by name: elf-b-owt, elf-m-owt, elf-l-owt,
// elf-b-wmt14-de-en, elf-b-xsum. Throws Error (usage) for another name.
RunConfig published_preset(const std::string& name, const std::vector<std::string>& assignments = {});

}  // namespace elf
