#include "sample_io.h"

#include <algorithm>
#include <iostream>

#include "elf/base/error.h"
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

// A record of the input as JSON: text, and the optional "id" and "index".
SampleInput parse_input(const std::string& line, const std::string& field, const std::string& place,
                        int64_t index) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) usage_error(place, ": no JSON object");
  const auto text = object.find(field);
  if (text == object.end() || !text->is_string())
    usage_error(place, ": no text under '", field, "'; name its key with --field");
  SampleInput input{text->get<std::string>(), nullptr, index};
  if (const auto id = object.find("id"); id != object.end()) input.id = *id;
  if (const auto own = object.find("index"); own != object.end()) {
    if (!own->is_number_integer() || own->get<int64_t>() < 0)
      usage_error(place, ": index is ", own->dump(), ", expected an integer from 0");
    input.index = own->get<int64_t>();
  }
  return input;
}

}  // namespace

SampleInputs read_sample_inputs(const std::string& file, const std::string& field) {
  const bool jsonl = !field.empty() || is_jsonl(file);
  RecordSource source;
  source.files = {file};
  source.format = RecordFormat::kLines;
  RecordReader reader(source);
  SampleInputs result;
  for (Record record; reader.next(record);) {
    const std::string& line = record.columns.front();
    const auto index = static_cast<int64_t>(result.inputs.size());
    if (jsonl && line.find_first_not_of(" \t") == std::string::npos) continue;
    SampleInput input =
        jsonl ? parse_input(line, field.empty() ? "text" : field, reader.place_of(record), index)
              : SampleInput{line, nullptr, index};
    result.with_line_breaks += break_no_lines(input.text);
    result.inputs.push_back(std::move(input));
  }
  return result;
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
  // Tokens of single bytes can make text that is no UTF-8.
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

LineWriter::LineWriter(const std::string& path) : path_(path) {
  if (path.empty()) return;
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) usage_error(path, ": its folder cannot be made: ", error.message());
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
