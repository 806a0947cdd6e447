// Scalars as the schema types them, whatever a YAML dialect would make of them: `no` and `010` are text where
// text is wanted and errors where a number or a boolean is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <type_traits>
#include <vector>

#include "elf/config/enum_names.h"
#include "fields.h"

namespace elf::config {

enum class ScalarStyle { kPlain, kQuoted, kNull, kList, kNotScalar };

// One assignment "section.key: text" and where it stands. Keys that take a list also take `4, 8` written as
// text, which is how --set gives them.
struct Entry {
  std::string section, key;
  std::string text;          // of kList: "a list"; of kNotScalar: "a mapping"
  std::vector<Entry> items;  // of kList: scalars
  ScalarStyle style = ScalarStyle::kPlain;
  std::string place;             // "run.yaml:12" or "--set optimizer.lr=abc"
  std::filesystem::path folder;  // where relative paths start

  std::string dotted() const { return section + "." + key; }
};

// "PLACE: section.key: found 'text', expected EXPECTED". `expected` may go on with a hint.
[[noreturn]] void refuse(const Entry& entry, const std::string& expected);

// ">= 1", "in [0, 1)", "" where the rule bounds nothing.
std::string range_text(const Rule& rule);
bool within(const Rule& rule, double value);

// Put the entry's value into `value`, or throw Error (usage).
void assign(const Entry& entry, const Rule& rule, bool& value);
void assign(const Entry& entry, const Rule& rule, int64_t& value);
void assign(const Entry& entry, const Rule& rule, uint64_t& value);
void assign(const Entry& entry, const Rule& rule, double& value);
void assign(const Entry& entry, const Rule& rule, std::string& value);

template <class E>
requires std::is_enum_v<E>
void assign(const Entry& entry, const Rule&, E& value) {
  if (entry.style != ScalarStyle::kPlain || !find_enum(entry.text, value)) {
    refuse(entry, "one of " + enum_choices<E>());
  }
}

std::vector<Entry> items_of(const Entry& entry);  // throws Error (usage) when the entry is no list

template <class T>
void assign(const Entry& entry, const Rule& rule, std::vector<T>& value) {
  std::vector<T> list;
  for (const Entry& item : items_of(entry)) assign(item, rule, list.emplace_back());
  value = std::move(list);
}

// Text of a value. Numbers read back equal, and floating ones always have a point, so that every YAML dialect
// takes them as such.
std::string value_text(bool value);
std::string value_text(int64_t value);
std::string value_text(uint64_t value);
std::string value_text(double value);
std::string value_text(const std::string& value);
template <class E>
requires std::is_enum_v<E> std::string value_text(E value) {
  return enum_name(value);
}
template <class T>
std::string value_text(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ", ") + value_text(value);
  return "[" + text + "]";
}

template <class T>
inline constexpr bool is_list = false;
template <class T>
inline constexpr bool is_list<std::vector<T>> = true;

// The same as YAML: text in quotes wherever a YAML dialect could take it for something else.
template <class T>
std::string yaml_text(const T& value) {
  return value_text(value);
}
std::string yaml_text(const std::string& value);

// "integer", "number", "true or false", "text", "path", or the choices.
template <class T>
std::string type_text(const Rule& rule) {
  if constexpr (is_list<T>) return "list of " + type_text<typename T::value_type>(rule) + "s";
  if constexpr (std::is_enum_v<T>) return "one of " + enum_choices<T>();
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if constexpr (std::is_same_v<T, double>) return "number";
  if constexpr (std::is_same_v<T, std::string>) return rule.path ? "path" : "text";
  return "integer";
}

}  // namespace elf::config
