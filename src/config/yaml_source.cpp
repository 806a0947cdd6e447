#include "yaml_source.h"

#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "elf/base/files.h"
#include "elf/base/log.h"

namespace elf::config {
namespace fs = std::filesystem;
namespace {

// What yaml-cpp takes without a word, or complains of in vaguer ones: tabs as indentation (editors differ in
// how wide a tab is), and lines that start with `%`, behind which it drops the rest.
void check_lines(const std::string& yaml, const std::string& name) {
  int line = 1;
  for (size_t start = 0; start < yaml.size(); ++line) {
    const size_t end = std::min(yaml.find('\n', start), yaml.size());
    const size_t first = std::min(yaml.find_first_not_of(" \t\r", start), end);
    if (first < end && yaml.substr(start, first - start).find('\t') != std::string::npos) {
      usage_error(name, ":", line, ": found a tab in the indentation, expected spaces");
    }
    if (yaml[start] == '%')
      usage_error(name, ":", line, ": found a YAML directive (%), expected sections and keys");
    start = end + 1;
  }
}

// UTF-8 without its byte order mark, or an error.
std::string decoded(std::string yaml, const std::string& name) {
  using namespace std::string_view_literals;
  if (yaml.starts_with("\xff\xfe") || yaml.starts_with("\xfe\xff")) {
    usage_error(name, ": found UTF-16, expected UTF-8; save the file as UTF-8");
  }
  if (yaml.starts_with("\xef\xbb\xbf")) {
    log_info(cat(name, ": dropped a byte order mark at the start"));
    yaml.erase(0, 3);
  }
  const size_t zero = yaml.find('\0');
  if (zero != std::string::npos)
    usage_error(name, ": found a NUL byte at offset ", zero, ", expected YAML text");
  return yaml;
}

// Takes a document and keeps nothing.
struct NoEvents final : YAML::EventHandler {
  using Mark = YAML::Mark;
  using Text = std::string;
  using Anchor = YAML::anchor_t;
  using Style = YAML::EmitterStyle::value;
  void OnDocumentStart(const Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const Mark&, Anchor) override {}
  void OnAlias(const Mark&, Anchor) override {}
  void OnScalar(const Mark&, const Text&, Anchor, const Text&) override {}
  void OnSequenceStart(const Mark&, const Text&, Anchor, Style) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const Mark&, const Text&, Anchor, Style) override {}
  void OnMapEnd() override {}
};

// Behind a stray comma YAML::LoadAll gives empty documents without end: the second one is enough.
void check_one_document(const Source& source) {
  std::istringstream in(source.yaml);
  YAML::Parser parser(in);
  NoEvents none;
  if (parser.HandleNextDocument(none) && parser.HandleNextDocument(none)) {
    usage_error(source.name,
                ": found a second YAML document, or what ends the first (a stray comma or "
                "bracket), expected one document");
  }
}

}  // namespace

// yaml-cpp takes the rest of the file for the text of a quote that is not closed.
void check_quotes(const YAML::Node& node, const Source& source, const std::string& place) {
  if (node.Tag() != "!") return;
  const size_t open = source.yaml.find_first_of("\"'|>", static_cast<size_t>(node.Mark().pos));
  if (open == std::string::npos || source.yaml[open] == '|' || source.yaml[open] == '>') return;
  const char quote = source.yaml[open];
  for (size_t i = open + 1; i < source.yaml.size() && source.yaml[i] != '\n'; ++i) {
    if (source.yaml[i] == '\\' && quote == '"') {
      ++i;
    } else if (source.yaml[i] == quote) {
      return;  // of '' the second opens a quote that the line must close in its turn
    }
  }
  usage_error(place, ": found a quote (", quote, ") that is not closed on its line");
}

Source read_source(const fs::path& path, const std::string& named_by) {
  std::error_code ignored;
  const std::string found_in = named_by.empty() ? "" : named_by + ": base: ";
  if (!fs::exists(path, ignored)) usage_error(found_in, path.string(), ": no such file");
  if (fs::is_directory(path, ignored))
    usage_error(found_in, path.string(), ": is a folder, expected a YAML file");
  std::string yaml = read_file(path);
  const std::string looks = what_bytes_look_like(std::string_view(yaml).substr(0, 256));
  if (!looks.empty()) usage_error(found_in, path.string(), ": found ", looks, ", expected a YAML file");
  return {std::move(yaml), path.string(), path.parent_path()};
}

YAML::Node parsed(Source& source) {
  source.yaml = decoded(std::move(source.yaml), source.name);
  check_lines(source.yaml, source.name);
  try {
    check_one_document(source);
    return YAML::Load(source.yaml);
  } catch (const YAML::Exception& e) {
    usage_error(source.place(e.mark), ": not valid YAML: ", e.msg);
  }
}

void set_scalar(const YAML::Node& node, const Source& source, Entry& entry) {
  if (node.IsNull()) {
    entry.style = ScalarStyle::kNull;
  } else if (node.IsSequence()) {
    entry.style = ScalarStyle::kList;
    entry.text = "a list";
    const Entry empty = entry;
    for (const auto& value : node) {
      Entry item = empty;
      item.style = ScalarStyle::kPlain;
      item.place = source.place(value.Mark());
      if (value.IsSequence()) {  // aliases could make few bytes of lists in lists very many
        item.style = ScalarStyle::kNotScalar;
        item.text = "a list";
      } else {
        set_scalar(value, source, item);
      }
      entry.items.push_back(std::move(item));
    }
  } else if (!node.IsScalar()) {
    entry.style = ScalarStyle::kNotScalar;
    entry.text = "a mapping";
  } else {
    if (node.Tag() != "?" && node.Tag() != "!" && !node.Tag().empty()) {
      usage_error(entry.place, ": ", entry.dotted(), ": found the tag ", node.Tag(),
                  ", expected a value without one");
    }
    check_quotes(node, source, entry.place);
    entry.text = node.Scalar();
    entry.style = node.Tag() == "!" ? ScalarStyle::kQuoted : ScalarStyle::kPlain;
  }
}

}  // namespace elf::config
