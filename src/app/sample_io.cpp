#include "sample_io.h"

#include <algorithm>
#include <iostream>

#include "elf/base/error.h"
#include "elf/base/json.h"
#include "elf/text/records.h"

namespace elf::app {
namespace {

using Json = nlohmann::ordered_json;

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool is_jsonl(const std::string& file) {
  for (const char* end : {".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz"}) {
    if (ends_with(file, end)) return true;
  }
  return false;
}

// Line breaks become blanks; true when there were any.
bool break_no_lines(std::string& text) {
  bool found = false;
  for (char& c : text) {
    if (c != '\n' && c != '\r') continue;
    c = ' ';
    found = true;
  }
  return found;
}

}  // namespace

SampleInputReader::SampleInputReader(const std::string& file, const std::string& field, int64_t most)
    : field_(field.empty() ? "text" : field),
      jsonl_(!field.empty() || is_jsonl(file)),
      most_(most),
      reader_({.files = {file}, .format = RecordFormat::kLines}) {}

bool SampleInputReader::next(SampleInput& input) {
  Record record;
  do {
    if (!reader_.next(record)) return false;
  } while (jsonl_ && record.columns.front().find_first_not_of(" \t") == std::string::npos);
  const std::string place = reader_.place_of(record), &line = record.columns.front();
  input = jsonl_ ? parse(line, place) : SampleInput{line, nullptr, count_, "", place};
  if (input.index >= most_)
    usage_error(place, ": index ", input.index, " is too large, expected one below ", most_);
  ++count_;
  with_line_breaks_ += break_no_lines(input.text);
  return true;
}

// A record as JSON: text, and the optional "id", "index" and "condition".
SampleInput SampleInputReader::parse(const std::string& line, const std::string& place) const {
  const nlohmann::json object = parse_json(line);
  if (!object.is_object()) usage_error(place, ": no JSON object");
  const auto text = object.find(field_);
  if (text == object.end() || !text->is_string())
    usage_error(place, ": no text under '", field_, "'; name its key with --field");
  SampleInput input{text->get<std::string>(), nullptr, count_, "", place};
  if (const auto id = object.find("id"); id != object.end()) input.id = *id;
  if (const auto own = object.find("index"); own != object.end()) {
    // Unsigned numbers beyond 2^63 would come out negative.
    if (!own->is_number_integer() || (!own->is_number_unsigned() && own->get<int64_t>() < 0) ||
        own->get<uint64_t>() >= static_cast<uint64_t>(most_))
      usage_error(place, ": index is ", own->dump(), ", expected an integer from 0 to ", most_ - 1);
    input.index = own->get<int64_t>();
  }
  if (const auto condition = object.find("condition"); condition != object.end() && condition->is_string())
    input.condition = condition->get<std::string>();
  return input;
}

std::string text_line(const SampleRecord& record) {
  std::string text = record.text;
  break_no_lines(text);
  return text;
}

std::string jsonl_line(const SampleRecord& record) {
  Json object = {{"index", record.index}};
  if (!record.id.is_null()) object["id"] = record.id;
  object["text"] = record.text;
  object["ids"] = record.ids;
  object["seed"] = record.seed;
  if (record.conditional) object["condition"] = record.condition;
  if (record.more.is_object()) object.update(record.more);
  // Tokens of single bytes can make text that is no UTF-8.
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void make_folder_of(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::absolute(path).parent_path(), error);
  if (error) usage_error(path, ": its folder cannot be made: ", error.message());
}

LineWriter::LineWriter(const std::string& path) : path_(path) {
  if (path.empty()) return;
  make_folder_of(path);
  file_ = std::make_unique<AtomicFile>(path);
  stream_.open(file_->temporary(), std::ios::binary);
  if (!stream_) environment_error(path, ": cannot be written (", file_->temporary().string(), ")");
}

void LineWriter::write(const std::string& line) {
  (file_ ? static_cast<std::ostream&>(stream_) : std::cout) << line << '\n';
}

void LineWriter::flush() {
  std::ostream& stream = file_ ? static_cast<std::ostream&>(stream_) : std::cout;
  if (!stream.flush())
    environment_error(path_.empty() ? "standard output" : path_, ": writing failed; is the disk full?");
}

void LineWriter::finish() {
  flush();
  if (!file_) return;
  stream_.close();
  file_->commit();
}

}  // namespace elf::app
