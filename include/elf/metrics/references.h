// References of a corpus, as the scorers of translations take them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace elf {

// One reference for each hypothesis, or none: an absent entry is no reference, an empty string is an empty
// one.
using ReferenceStream = std::vector<std::optional<std::string>>;

// The `nrefs` of a signature: how many references each segment has, "var" when that differs.
std::string reference_count(const std::vector<ReferenceStream>& references);

}  // namespace elf
