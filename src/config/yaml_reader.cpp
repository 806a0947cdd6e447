#include "yaml_reader.h"

#include "elf/base/error.h"
#include "schema.h"
#include "yaml_source.h"

namespace elf::config {
namespace fs = std::filesystem;
namespace {

class Reader {
 public:
  void file(const fs::path& path, const std::string& named_by);
  void text(Source source);

  std::vector<Entry> entries;

 private:
  void bases(const YAML::Node& node, const std::string& place, const fs::path& folder);

  struct OpenFile {
    fs::path identity;
    std::string name;
  };
  std::vector<OpenFile> open_;  // the file being read and those whose bases led to it
};

void Reader::file(const fs::path& path, const std::string& named_by) {
  Source source = read_source(path, named_by);
  const fs::path identity = fs::weakly_canonical(path);
  for (size_t i = 0; i < open_.size(); ++i) {
    if (open_[i].identity != identity) continue;
    std::string chain;
    for (; i < open_.size(); ++i) chain += open_[i].name + " -> ";
    usage_error(named_by, ": base files name each other in a circle: ", chain, path.string());
  }
  open_.push_back({identity, path.string()});
  text(std::move(source));
  open_.pop_back();
}

void Reader::text(Source source) {
  const YAML::Node root = parsed(source);
  if (root.IsNull()) return;
  if (!root.IsMap()) {
    usage_error(source.place(root.Mark()), ": found no mapping, expected sections such as `model:`");
  }
  // Bases come first wherever the key stands, so that the file itself wins.
  for_each_key(root, "", source,
               [&](const std::string& key, const YAML::Node& node, const std::string& place) {
                 if (key == "base") bases(node, place, source.folder);
               });
  for_each_key(root, "", source,
               [&](const std::string& key, const YAML::Node& node, const std::string& place) {
                 if (key != "base") read_section(key, node, place, source, entries);
               });
}

void Reader::bases(const YAML::Node& node, const std::string& place, const fs::path& folder) {
  const auto one = [&](const YAML::Node& name) {
    if (!name.IsScalar() || name.Scalar().empty()) {
      usage_error(place, ": base: found ", name.IsNull() ? "nothing (null)" : "no name",
                  ", expected the name of a file or a list of names");
    }
    file((folder / name.Scalar()).lexically_normal(), place);
  };
  if (node.IsSequence()) {
    for (const auto& name : node) one(name);
  } else {
    one(node);
  }
}

}  // namespace

void read_section(const std::string& name, const YAML::Node& node, const std::string& place,
                  const Source& source, std::vector<Entry>& entries) {
  if (!is_section(name)) refuse_unknown_section(place, name);
  if (node.IsNull()) return;  // all its keys are commented out
  if (!node.IsMap()) {
    usage_error(place, ": ", name, ": found ", node.IsSequence() ? "a list" : "'" + node.Scalar() + "'",
                ", expected keys indented under the section");
  }
  for_each_key(node, name, source,
               [&](const std::string& key, const YAML::Node& value, const std::string& key_place) {
                 Entry entry;
                 entry.section = name;
                 entry.key = key;
                 entry.place = key_place;
                 entry.folder = source.folder;
                 set_scalar(value, source, entry);
                 entries.push_back(std::move(entry));
               });
}

std::vector<Entry> read_text(const std::string& yaml, const std::string& origin, const fs::path& folder) {
  Reader reader;
  reader.text({yaml, origin, folder});
  return std::move(reader.entries);
}

std::vector<Entry> read_files(const fs::path& file) {
  Reader reader;
  reader.file(file, "");
  return std::move(reader.entries);
}

Entry read_assignment(const std::string& assignment) {
  const std::string place = "--set " + assignment;
  const size_t equals = assignment.find('=');
  const std::string name = assignment.substr(0, equals);
  const size_t dot = name.find('.');
  if (equals == std::string::npos || dot == std::string::npos) {
    usage_error(place, ": expected section.key=value, for example optimizer.lr=3e-3");
  }
  return {.section = name.substr(0, dot),
          .key = name.substr(dot + 1),
          .text = assignment.substr(equals + 1),
          .style = ScalarStyle::kPlain,
          .place = place,
          .folder = fs::current_path()};
}

}  // namespace elf::config
