// What an output path may not be: one of the inputs, a folder, a device.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace elf {

// Call before any work. Throws Error (usage) when `output` is one of `inputs` under whatever name (links,
// "./", case of the file system), so that no tool writes over the user's text. Empty paths and "-" are left
// out.
void refuse_overwriting(const std::filesystem::path& output, const std::vector<std::string>& inputs);

}  // namespace elf
