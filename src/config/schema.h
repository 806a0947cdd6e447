// What is known of every key, and how to walk it by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scalars.h"

namespace elf::config {

struct FieldInfo {
  std::string section, key, type, default_text, range, help;
  std::string dotted() const { return section + "." + key; }
};
struct SectionInfo {
  std::string name, help;
};

// All keys, in the order of the field lists.
const std::vector<FieldInfo>& known_fields();
const std::vector<SectionInfo>& known_sections();
bool is_section(const std::string& name);
bool is_preset(const std::string& name);
std::string preset_names();  // "elf-b, elf-m, ..."

// Puts one entry into its member. Throws Error (usage): unknown key, wrong type, out of range.
void assign(const Entry& entry, RunConfig& config);

// Throws Error (usage) for a name at the top of a file that is no section, or a key that its section lacks,
// naming the nearest known one.
[[noreturn]] void refuse_unknown_section(const std::string& place, const std::string& name);
[[noreturn]] void refuse_unknown_key(const Entry& entry);

// A relation or range that does not hold: the keys it is about, and one sentence.
struct Violation {
  std::vector<std::string> keys;
  std::string message;
};
std::optional<Violation> find_violation(const RunConfig& config);

// The name with the smallest distance; the first of equals.
std::string nearest(const std::string& wanted, const std::vector<std::string>& names);

// How many letters must be inserted, removed, replaced or swapped with their neighbour to make one of the
// other.
int edit_distance(const std::string& a, const std::string& b);

}  // namespace elf::config
