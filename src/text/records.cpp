#include "elf/text/records.h"

#include <glob.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "elf/base/error.h"
#include "elf/base/json.h"
#include "elf/text/unicode.h"
#include "line_reader.h"

namespace elf {
namespace {

std::string shown(const std::string& file) {
  return file == "-" ? "standard input" : file;
}

RecordFormat format_of(const RecordSource& source, const std::string& file) {
  if (source.format != RecordFormat::kAuto) return source.format;
  if (!source.fields.empty()) return RecordFormat::kJsonl;
  std::filesystem::path name(file);
  if (name.extension() == ".gz") name = name.stem();
  const std::string extension = name.extension().string();
  const bool json = extension == ".jsonl" || extension == ".ndjson" || extension == ".json";
  return json ? RecordFormat::kJsonl : RecordFormat::kLines;
}

// The value under "a.b" (the key "a.b" itself goes first), null when there is none.
const nlohmann::json* find_field(const nlohmann::json& object, const std::string& field) {
  if (!object.is_object()) return nullptr;
  if (const auto found = object.find(field); found != object.end()) return &*found;
  const size_t dot = field.find('.');
  if (dot == std::string::npos) return nullptr;
  const auto found = object.find(field.substr(0, dot));
  return found == object.end() ? nullptr : find_field(*found, field.substr(dot + 1));
}

std::string keys_of(const nlohmann::json& object) {
  std::string keys;
  for (const auto& [key, value] : object.items()) keys += (keys.empty() ? "" : ", ") + key;
  return keys;
}

}  // namespace

BadText parse_bad_text(const std::string& name) {
  if (name == "error") return BadText::kError;
  if (name == "replace") return BadText::kReplace;
  if (name == "drop") return BadText::kDrop;
  usage_error("--invalid-utf8 '", name, "' is not one of error, replace, drop");
}

struct RecordReader::Impl {
  RecordSource source;
  std::vector<std::string> fields;
  size_t next_file = 0;  // to be opened
  std::unique_ptr<text::LineReader> lines;
  RecordFormat format = RecordFormat::kLines;
  int64_t expected_columns = 0;
  int64_t line_number = 0, replaced = 0, bad = 0, bytes_done = 0, bytes_total = 0;
  std::string line;

  std::string place() const { return cat(shown(source.files[next_file - 1]), ":", line_number); }

  bool next_line() {
    while (true) {
      if (lines && lines->next(line)) {
        ++line_number;
        return true;
      }
      if (lines) bytes_done += lines->bytes_read();
      lines.reset();
      if (next_file == source.files.size()) return false;
      const std::string& file = source.files[next_file++];
      line_number = 0;
      format = format_of(source, file);
      lines = std::make_unique<text::LineReader>(file);
    }
  }

  // Bad text in `text` treated as asked; true when the record is to be dropped. `where` explains the offset
  // in the message.
  bool handle_bad_text(std::string& text, const std::string& where, int64_t base) {
    const size_t at = find_bad_text(text);
    if (at == std::string::npos) return false;
    if (source.bad_text == BadText::kError) {
      const auto byte = static_cast<unsigned>(static_cast<unsigned char>(text[at]));
      char shown_byte[8];
      std::snprintf(shown_byte, sizeof shown_byte, "0x%02X", byte);
      const std::string in_file =
          base >= 0 ? cat(" (byte ", base + static_cast<int64_t>(at), " of the file)") : "";
      usage_error(place(), ": ", byte == 0 ? "NUL" : cat("invalid UTF-8 (", shown_byte, ")"), " at byte ", at,
                  " of ", where, in_file,
                  "; repair the file (elf-prepare can also replace or drop such records: --invalid-utf8)");
    }
    if (source.bad_text == BadText::kDrop) return true;
    text = replace_bad_text(text);
    ++replaced;
    return false;
  }

  void split_tabs(Record& record) {
    std::vector<std::string> all;
    for (size_t begin = 0;;) {
      const size_t tab = line.find('\t', begin);
      all.push_back(line.substr(begin, tab - begin));
      if (tab == std::string::npos) break;
      begin = tab + 1;
    }
    const auto found = static_cast<int64_t>(all.size());
    if (source.columns > 0 || line_number == 1)
      expected_columns = source.columns > 0 ? source.columns : found;
    if (found != expected_columns) {
      usage_error(place(), ": ", found, " tab-separated columns, expected ", expected_columns,
                  source.columns > 0 ? "" : ", as in line 1");
    }
    if (source.take.empty()) {
      record.columns = std::move(all);
      return;
    }
    for (const int64_t column : source.take) {
      if (column >= found)
        usage_error(place(), ": ", found, " tab-separated columns, but column ", column + 1,
                    " is asked for (they count from 1)");
      record.columns.push_back(all[static_cast<size_t>(column)]);
    }
  }

  // true when the record is to be dropped.
  bool take_fields(Record& record) {
    nlohmann::json object;
    if (json_nests_too_deep(line)) usage_error(place(), ": JSON nested more than ", kDeepestJson, " deep");
    try {
      object = parse_json_or_throw(line);
    } catch (const nlohmann::json::exception& error) {
      const std::string message = error.what();
      usage_error(place(), ": no JSON: ",
                  message.substr(message.find("] ") == std::string::npos ? 0 : message.find("] ") + 2));
    }
    if (!object.is_object()) usage_error(place(), ": a JSON ", object.type_name(), ", expected an object");
    for (const std::string& field : fields) {
      const nlohmann::json* value = find_field(object, field);
      if (!value) usage_error(place(), ": no field '", field, "'; the object has: ", keys_of(object));
      if (!value->is_string())
        usage_error(place(), ": field '", field, "' is a ", value->type_name(), ", expected a string");
      record.columns.push_back(value->get<std::string>());
      if (handle_bad_text(record.columns.back(), cat("field '", field, "'"), -1)) return true;
    }
    return false;
  }
};

RecordReader::RecordReader(RecordSource source) : impl_(std::make_unique<Impl>()) {
  impl_->fields = source.fields.empty() ? std::vector<std::string>{"text"} : source.fields;
  impl_->source = std::move(source);
  if (impl_->source.files.empty()) usage_error("no input file");
  for (const std::string& file : impl_->source.files) {
    std::error_code none;
    const auto size =
        std::filesystem::is_regular_file(file, none) ? std::filesystem::file_size(file, none) : 0;
    if (size == 0 && file != "-" && !std::filesystem::exists(file, none)) usage_error(file, ": no such file");
    impl_->bytes_total += static_cast<int64_t>(size);
    if (size == 0) impl_->bytes_total = INT64_MIN / 2;  // unknown from here on
  }
}

RecordReader::~RecordReader() = default;
RecordReader::RecordReader(RecordReader&&) noexcept = default;

bool RecordReader::next(Record& record) {
  Impl& r = *impl_;
  do {
    if (!r.next_line()) return false;
  } while (r.format == RecordFormat::kJsonl && is_blank(r.line));
  record.columns.clear();
  record.file = r.next_file - 1;
  record.line = r.line_number;
  record.bad = r.handle_bad_text(r.line, "the line", r.lines->offset());
  if (!record.bad) {
    switch (r.format) {
      case RecordFormat::kTsv:
        r.split_tabs(record);
        break;
      case RecordFormat::kJsonl:
        record.bad = r.take_fields(record);
        break;
      default:
        record.columns.push_back(r.line);
    }
  }
  if (record.bad) {
    record.columns.clear();
    ++r.bad;
  }
  return true;
}

const RecordSource& RecordReader::source() const {
  return impl_->source;
}
std::string RecordReader::place_of(const Record& record) const {
  return cat(shown(impl_->source.files.at(record.file)), ":", record.line);
}
int64_t RecordReader::replaced() const {
  return impl_->replaced;
}
int64_t RecordReader::bad() const {
  return impl_->bad;
}
int64_t RecordReader::bytes_read() const {
  return impl_->bytes_done + (impl_->lines ? impl_->lines->bytes_read() : 0);
}
int64_t RecordReader::bytes_total() const {
  return std::max<int64_t>(0, impl_->bytes_total);
}

std::vector<std::string> expand_files(const std::vector<std::string>& names) {
  std::vector<std::string> files;
  for (const std::string& name : names) {
    std::error_code none;
    if (name.find_first_of("*?[") == std::string::npos || std::filesystem::exists(name, none)) {
      files.push_back(name);
      continue;
    }
    glob_t found{};
    const int code = ::glob(name.c_str(), GLOB_TILDE, nullptr, &found);  // sorted
    files.insert(files.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
    ::globfree(&found);
    if (code != 0) usage_error(name, ": no file matches");
  }
  return files;
}

std::vector<std::string> read_records(const RecordSource& source) {
  std::vector<std::string> texts;
  RecordReader reader(source);
  for (Record record; reader.next(record);) {
    if (!record.bad) texts.push_back(std::move(record.columns.at(0)));
  }
  return texts;
}

}  // namespace elf
