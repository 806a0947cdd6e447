#include "elf/config/run_config.h"

#include <map>

#include "elf/base/error.h"
#include "resolve.h"
#include "schema.h"
#include "yaml_reader.h"

namespace elf {
namespace config {
namespace {

// The last preset named, wherever it stands, fills its three keys; entries for these keys then win over it.
void apply_preset(const std::vector<Entry>& entries, ModelConfig& model,
                  std::map<std::string, std::string>& places) {
  RunConfig last;
  std::string place;
  for (const Entry& entry : entries) {
    if (entry.dotted() != "model.preset") continue;
    assign(entry, last);
    if (!last.model.preset.empty() && !is_preset(last.model.preset))
      refuse(entry, "one of " + preset_names());
    place = entry.place;
  }
  for (const ModelPreset& preset : model_presets()) {
    if (preset.name != last.model.preset) continue;
    model.depth = preset.depth;
    model.hidden_size = preset.hidden_size;
    model.num_heads = preset.num_heads;
    for (const char* key : {"model.depth", "model.hidden_size", "model.num_heads"})
      places[key] = place + ", by the preset";
  }
}

// "PLACE: sentence (key: place; key: default)".
[[noreturn]] void refuse(const Violation& violation, const std::map<std::string, std::string>& places,
                         const std::string& origin) {
  std::string first, list;
  for (const std::string& key : violation.keys) {
    const auto found = places.find(key);
    if (first.empty() && found != places.end()) first = found->second;
    list += (list.empty() ? "" : "; ") + key + ": " + (found == places.end() ? "default" : found->second);
  }
  usage_error(first.empty() ? origin : first, ": ", violation.message, " (", list, ")");
}

}  // namespace

RunConfig resolved(std::vector<Entry> entries, const std::string& origin,
                   const std::vector<std::string>& assignments) {
  for (const std::string& assignment : assignments) entries.push_back(read_assignment(assignment));
  RunConfig config;
  std::map<std::string, std::string> places;
  apply_preset(entries, config.model, places);
  // One by one, not merged first: a bad value in a base is found even where a later file hides it.
  for (const Entry& entry : entries) {
    assign(entry, config);
    places[entry.dotted()] = entry.place;
  }
  if (const auto violation = find_violation(config)) refuse(*violation, places, origin);
  return config;
}

}  // namespace config

const std::vector<ModelPreset>& model_presets() {
  static const std::vector<ModelPreset> presets = {{"elf-b", 12, 768, 12},
                                                   {"elf-m", 24, 1056, 16},
                                                   {"elf-l", 32, 1280, 16},
                                                   {"small", 6, 256, 4},
                                                   {"nano", 4, 128, 4}};
  return presets;
}

RunConfig load_run_config(const std::filesystem::path& file, const std::vector<std::string>& assignments) {
  return config::resolved(config::read_files(file), file.string(), assignments);
}

RunConfig parse_run_config(const std::string& yaml, const std::string& origin,
                           const std::filesystem::path& folder, const std::vector<std::string>& assignments) {
  return config::resolved(config::read_text(yaml, origin, folder), origin, assignments);
}

}  // namespace elf
