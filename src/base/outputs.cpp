#include "elf/base/outputs.h"

#include <algorithm>
#include <string_view>

#include "elf/base/error.h"

namespace elf {
namespace fs = std::filesystem;
namespace {

// Of a folder that is an input: what runs, models, encoders, tables and tokenizers consist of.
constexpr std::string_view kParts[] = {
    "config.yaml", "config.json", "manifest.json", "model.json",   "metrics.jsonl",
    "log.txt",     "state.json",  "table.json",    "spiece.model", "tokenizer_config.json"};

// One name for every way to write a path; "x/" is "x".
fs::path place_of(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(path, error);
  return whole.has_filename() ? whole : whole.parent_path();
}

bool is_inside(const fs::path& path, const fs::path& folder) {
  const auto [rest, unmatched] = std::mismatch(path.begin(), path.end(), folder.begin(), folder.end());
  return unmatched == folder.end() && rest != path.end();
}

bool is_part(const fs::path& file) {
  std::error_code error;
  return fs::exists(file, error) && (file.extension() == ".safetensors" ||
                                     std::ranges::find(kParts, file.filename().string()) != std::end(kParts));
}

}  // namespace

void refuse_overwriting(const fs::path& output, const std::vector<std::string>& inputs) {
  std::error_code error;
  if (output.empty() || output == "-") return;
  const fs::path place = place_of(output);
  for (const std::string& input : inputs) {
    if (input.empty() || input == "-") continue;
    const fs::path from = place_of(input);
    if (fs::equivalent(output, input, error) || place == from) {
      usage_error(output.string(), ": is an input as well (", input,
                  ") and would be lost; name another output");
    }
    if (is_inside(from, place))
      usage_error(output.string(), ": holds an input (", input,
                  "), which would be lost; name another output");
    if (is_inside(place, from) && is_part(place))
      usage_error(output.string(), ": is a part of an input (", input, "); name another output");
  }
}

}  // namespace elf
