// Reading the parts of a sweep's file: mappings of known keys, typed values.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "elf/config/ablation_spec.h"
#include "scalars.h"
#include "yaml_source.h"

namespace elf::config {

// A node with the key that leads to it ("score.red") and its place.
struct Part {
  const Source& source;
  std::string name, place;
  YAML::Node node;

  Part under(const std::string& key, const YAML::Node& child, const std::string& child_place) const {
    return {source, name.empty() ? key : name + "." + key, child_place, child};
  }
};

using UsePart = std::function<void(const Part&)>;

// Calls for each key of the mapping what is known of it. Throws Error (usage): no mapping, a key that is not
// known (with the nearest that is), repeated keys.
void read_known_keys(const Part& part, const std::vector<std::pair<std::string, UsePart>>& known);

// Calls for each key of the mapping, whatever it is called, in order.
void read_named(const Part& part, const std::function<void(const std::string& name, const Part&)>& use);

// Calls for each item of the list.
void read_list(const Part& part, const UsePart& use);

template <class T>
T value_of(const Part& part, const Rule& rule = {}) {
  Entry entry;
  const size_t dot = part.name.rfind('.');
  if (dot != std::string::npos) entry.section = part.name.substr(0, dot);
  entry.key = part.name.substr(dot + 1);
  entry.place = part.place;
  entry.folder = part.source.folder;
  set_scalar(part.node, part.source, entry);
  T value{};
  assign(entry, rule, value);
  return value;
}

// What stores the value of a key.
template <class T>
UsePart into(T& value, const Rule& rule = {}) {
  return [&value, rule](const Part& part) { value = value_of<T>(part, rule); };
}

ScoreSpec read_score(const Part& part);
Published read_published(const Part& part);

// One setting, or one for each value of a list.
std::vector<SampleArm> read_sample_arm(const std::string& name, const Part& part);

}  // namespace elf::config
