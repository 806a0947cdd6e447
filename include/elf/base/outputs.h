// What an output path may not be: one of the inputs, a folder, a device.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace elf {

// Call before any work. Throws Error (usage) when `output` is one of `inputs` under whatever name (links,
// "./", case of the file system), a folder above one, or a file that a run, model, encoder, table or tokenizer
// among them consists of, so that no tool writes over what it was given. Empty paths and "-" are left out.
void refuse_overwriting(const std::filesystem::path& output, const std::vector<std::string>& inputs);

}  // namespace elf
