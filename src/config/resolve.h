// From entries to a checked configuration.
#pragma once

#include <string>
#include <vector>

#include "elf/config/run_config.h"
#include "scalars.h"

namespace elf::config {

// Entries in order, later ones winning, then the assignments; ranges and relations are checked. `origin`
// stands in messages about keys that no entry names.
RunConfig resolved(std::vector<Entry> entries, const std::string& origin,
                   const std::vector<std::string>& assignments);

}  // namespace elf::config
