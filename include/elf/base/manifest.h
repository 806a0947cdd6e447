// A manifest makes a folder of files whole or visibly broken: it lists the size and digest of each file and
// is written last.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace elf {

inline constexpr const char* kManifestName = "manifest.json";

// Writes folder/manifest.json over these files of the folder (names relative to it). Throws Error.
void write_manifest(const std::filesystem::path& folder, const std::vector<std::string>& files);

// "" when every listed file is there with its size and digest; else what is wrong, in words.
std::string manifest_problem(const std::filesystem::path& folder);

// The digest of the manifest itself: one name for the content of the whole folder. Throws Error (usage)
// without a manifest.
std::string manifest_digest(const std::filesystem::path& folder);

}  // namespace elf
