// One YAML text with its name, and what is asked of it before its keys are looked at.
#pragma once

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "elf/base/error.h"
#include "scalars.h"

namespace elf::config {

// One text and what it is called.
struct Source {
  std::string yaml, name;
  std::filesystem::path folder;  // where its relative paths start

  std::string place(const YAML::Mark& mark) const {
    return mark.is_null() ? name : cat(name, ":", mark.line + 1);
  }
};

// The file, which `named_by` ("run.yaml:3", or "") names as a base. Throws Error (usage): missing, a folder,
// no text.
Source read_source(const std::filesystem::path& path, const std::string& named_by);

// The one document of the text, null when it is empty; the byte order mark is taken off `source`. Throws
// Error (usage) naming the line: no YAML, tab indentation, directives, several documents, UTF-16.
YAML::Node parsed(Source& source);

// A value with its style; lists with their items. Throws Error (usage): tags, quotes that are not closed.
void set_scalar(const YAML::Node& node, const Source& source, Entry& entry);
void check_quotes(const YAML::Node& node, const Source& source, const std::string& place);

// The keys under `name:` of a configuration. Throws Error (usage): no such section, no mapping, repeated
// keys.
void read_section(const std::string& name, const YAML::Node& node, const std::string& place,
                  const Source& source, std::vector<Entry>& entries);

// Calls use(key, value, place) for each pair; refuses repeated keys and keys that are no plain names.
template <class Use>
void for_each_key(const YAML::Node& map, const std::string& prefix, const Source& source, Use use) {
  std::map<std::string, int> lines;
  for (const auto& pair : map) {
    const std::string place = source.place(pair.first.Mark());
    if (!pair.first.IsScalar())
      usage_error(place, ": found a key that is no plain name under '", prefix, "'");
    check_quotes(pair.first, source, place);
    const std::string key = pair.first.Scalar();
    const auto [seen, fresh] = lines.emplace(key, pair.first.Mark().line + 1);
    if (!fresh) {
      usage_error(place, ": key '", prefix.empty() ? key : prefix + "." + key,
                  "' is repeated; it stands on line ", seen->second, " already; remove one");
    }
    use(key, pair.second, place);
  }
}

}  // namespace elf::config
