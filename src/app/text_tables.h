// Tables as text that other programs show.
#pragma once

#include <string>
#include <vector>

namespace elf::app {

// The first row is the header; the first column stands to the left, the others to the right.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);
std::string csv_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace elf::app
