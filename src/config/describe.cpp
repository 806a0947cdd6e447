// Configurations as text: YAML, pairs, and the documentation of every key.
#include "schema.h"

namespace elf {
namespace config {
namespace {

struct WriteYaml {
  std::string text;

  template <class S>
  void section(const char* name, S& values, const char*) {
    text += (text.empty() ? "" : "\n") + std::string(name) + ":\n";
    fields(*this, values);
  }
  template <class T>
  void operator()(const char* key, T& value, const Rule&, const char*) {
    text += "  " + std::string(key) + ": " + yaml_text(value) + "\n";
  }
};

struct Flatten {
  std::string name;
  std::vector<std::pair<std::string, std::string>> pairs;

  template <class S>
  void section(const char* section_name, S& values, const char*) {
    name = section_name;
    fields(*this, values);
  }
  template <class T>
  void operator()(const char* key, T& value, const Rule&, const char*) {
    pairs.emplace_back(name + "." + key, value_text(value));
  }
};

constexpr const char* kIntroduction = R"(# Configuration

<!-- Written by describe_fields() in src/config/describe.cpp; a test compares. To renew: ELF_UPDATE_DOCS=1 ctest -R config_test -->

A run is one YAML file of the sections below (`configs/` holds examples). Every key has a default; a file names only
what differs.

- `base: other.yaml`, or a list of names, reads those files first; names are relative to the naming file, and later
  files win.
- `--set section.key=value` on the command line comes last, in order.
- Unknown and repeated keys, wrong types and values out of range are errors that name file, line and key.
- The key decides the type: a number is written `1e-4`, `.5` or `3`, an integer in plain digits, a boolean `true` or
  `false`; text stays as written, so `no` and `010` are text where text is wanted. Nothing (null), `nan` and `inf` are
  refused, and so are tabs as indentation.
- Paths are relative to the file that names them; with `--set`, and for `train.out`, to the working directory.
- `model.preset` fills depth, hidden_size and num_heads; any of these three set anywhere wins over it.
)";

std::string preset_table() {
  std::string text = "\n| preset | depth | hidden_size | num_heads |\n|---|---|---|---|\n";
  for (const ModelPreset& preset : model_presets()) {
    text += cat("| `", preset.name, "` | ", preset.depth, " | ", preset.hidden_size, " | ", preset.num_heads,
                " |\n");
  }
  return text;
}

std::string section_table(const SectionInfo& section) {
  std::string text = cat("\n## `", section.name, ":` ", section.help,
                         "\n\n| key | type | default | range | meaning |\n|---|---|---|---|---|\n");
  for (const FieldInfo& field : known_fields()) {
    if (field.section != section.name) continue;
    text += cat("| `", field.key, "` | ", field.type, " | `", field.default_text, "` | ", field.range, " | ",
                field.help, " |\n");
  }
  return text;
}

}  // namespace
}  // namespace config

std::string to_yaml(const RunConfig& run) {
  config::WriteYaml visitor;
  RunConfig copy = run;
  config::sections(visitor, copy);
  return visitor.text;
}

std::vector<std::pair<std::string, std::string>> flat_fields(const RunConfig& run) {
  config::Flatten visitor;
  RunConfig copy = run;
  config::sections(visitor, copy);
  return visitor.pairs;
}

std::string describe_fields() {
  std::string text = config::kIntroduction;
  for (const config::SectionInfo& section : config::known_sections()) {
    text += config::section_table(section);
    if (section.name == "model") text += config::preset_table();
  }
  return text;
}

}  // namespace elf
