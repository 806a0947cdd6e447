#include "text_tables.h"

namespace elf::app {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string escaped(const std::string& text, const std::string& what, const std::string& by) {
  std::string out;
  for (const char c : text) out += what.find(c) == std::string::npos ? std::string(1, c) : by + c;
  return out;
}

}  // namespace

std::string markdown_table(const Rows& rows) {
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) {
    text += "|";
    for (const std::string& cell : rows[i]) text += " " + escaped(cell, "|", "\\") + " |";
    text += "\n";
    if (i > 0) continue;
    text += "|";
    for (size_t k = 0; k < rows[i].size(); ++k) text += k == 0 ? "---|" : "---:|";
    text += "\n";
  }
  return text;
}

std::string csv_table(const Rows& rows) {
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    for (size_t k = 0; k < row.size(); ++k) {
      const bool quote = row[k].find_first_of(",\"\n") != std::string::npos;
      text += (k == 0 ? "" : ",") + (quote ? "\"" + escaped(row[k], "\"", "\"") + "\"" : row[k]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace elf::app
