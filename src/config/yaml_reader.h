// YAML files to a flat list of entries, bases first.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scalars.h"

namespace elf::config {

// Entries of the text, those of its `base:` files before its own, each file's in its own order.
// Throws Error (usage): no YAML, tab indentation, unknown section, repeated key, missing base, bases that
// name each other in a circle.
std::vector<Entry> read_text(const std::string& yaml, const std::string& origin,
                             const std::filesystem::path& folder);
std::vector<Entry> read_files(const std::filesystem::path& file);

// From "section.key=value".
Entry read_assignment(const std::string& assignment);

}  // namespace elf::config
