#include "schema.h"

#include <algorithm>
#include <type_traits>

#include "elf/base/error.h"

namespace elf::config {
namespace {

struct Collect {
  std::vector<FieldInfo> fields_found;
  std::vector<SectionInfo> sections_found;

  template <class S>
  void section(const char* name, S& values, const char* help) {
    sections_found.push_back({name, help});
    fields(*this, values);
  }
  template <class T>
  void operator()(const char* key, T& value, const Rule& rule, const char* help) {
    fields_found.push_back(
        {sections_found.back().name, key, type_text<T>(rule), yaml_text(value), range_text(rule), help});
  }
};

const Collect& collected() {
  static const Collect instance = [] {
    Collect made;
    RunConfig defaults;
    sections(made, defaults);
    return made;
  }();
  return instance;
}

struct Assign {
  const Entry& entry;
  bool found = false;

  template <class S>
  void section(const char* name, S& values, const char*) {
    if (entry.section == name) fields(*this, values);
  }
  template <class T>
  void operator()(const char* key, T& value, const Rule& rule, const char*) {
    if (entry.key != key) return;
    found = true;
    config::assign(entry, rule, value);
  }
};

// What is cut short ("optim") is as near as one slip of the finger.
int distance(const std::string& wanted, const std::string& name) {
  const bool cut = wanted.size() >= 3 && (name.starts_with(wanted) || wanted.starts_with(name));
  return cut ? 1 : edit_distance(wanted, name);
}

// Where a key of that very name lives: "optimizer.lr" for "lr"; "" when nowhere.
std::string section_that_has(const std::string& key) {
  for (const FieldInfo& field : known_fields()) {
    if (field.key == key) return field.dotted();
  }
  return "";
}

}  // namespace

std::string nearest(const std::string& wanted, const std::vector<std::string>& names) {
  return *std::min_element(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    return distance(wanted, a) < distance(wanted, b);
  });
}

const std::vector<FieldInfo>& known_fields() {
  return collected().fields_found;
}
const std::vector<SectionInfo>& known_sections() {
  return collected().sections_found;
}

bool is_section(const std::string& name) {
  return std::any_of(known_sections().begin(), known_sections().end(),
                     [&](const SectionInfo& section) { return section.name == name; });
}

bool is_preset(const std::string& name) {
  return std::any_of(model_presets().begin(), model_presets().end(),
                     [&](const ModelPreset& preset) { return preset.name == name; });
}

std::string preset_names() {
  std::string names;
  for (const ModelPreset& preset : model_presets()) names += (names.empty() ? "" : ", ") + preset.name;
  return names;
}

void assign(const Entry& entry, RunConfig& config) {
  Assign visitor{entry};
  sections(visitor, config);
  if (!visitor.found) refuse_unknown_key(entry);
}

void refuse_unknown_section(const std::string& place, const std::string& name) {
  std::vector<std::string> names = {"base"};
  for (const SectionInfo& section : known_sections()) names.push_back(section.name);
  for (const FieldInfo& field : known_fields()) {
    if (field.dotted() == name) {
      usage_error(place, ": unknown section '", name, "'; write the key '", field.key,
                  "' indented under the section '", field.section, ":'");
    }
  }
  const std::string home = section_that_has(name);
  if (!home.empty()) {
    usage_error(place, ": unknown section '", name, "'; there is a key ", home,
                ": keys stand indented under their section");
  }
  std::string list;
  for (const std::string& known : names) list += (list.empty() ? "" : ", ") + known;
  usage_error(place, ": unknown section '", name, "'; the nearest known one is '", nearest(name, names),
              "' (all: ", list, ")");
}

void refuse_unknown_key(const Entry& entry) {
  if (!is_section(entry.section)) refuse_unknown_section(entry.place, entry.section);
  std::string best = section_that_has(entry.key);
  if (best.empty()) {
    std::vector<std::string> names;
    for (const FieldInfo& field : known_fields()) {
      if (field.section == entry.section) names.push_back(field.key);
    }
    best = entry.section + "." + nearest(entry.key, names);
  }
  usage_error(entry.place, ": unknown key '", entry.dotted(), "'; the nearest known one is '", best, "'");
}

int edit_distance(const std::string& a, const std::string& b) {
  const size_t n = a.size(), m = b.size();
  std::vector<std::vector<int>> d(n + 1, std::vector<int>(m + 1));
  for (size_t i = 0; i <= n; ++i) d[i][0] = static_cast<int>(i);
  for (size_t j = 0; j <= m; ++j) d[0][j] = static_cast<int>(j);
  for (size_t i = 1; i <= n; ++i) {
    for (size_t j = 1; j <= m; ++j) {
      d[i][j] =
          std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[n][m];
}

}  // namespace elf::config
