#include "eval_common.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/base/log.h"
#include "elf/text/records.h"
#include "elf/text/words.h"
#include "elf/version.h"

namespace elf::app {
namespace {

bool is_record_with(const std::string& line, const std::string& field) {
  if (line.empty() || line.front() != '{') return false;
  const auto record = parse_json(line);
  return record.is_object() && record.contains(field);
}

std::vector<std::string> read_as(const std::string& file, RecordFormat format, const std::string& field) {
  RecordSource source;
  source.files = {file};
  source.format = format;
  if (format == RecordFormat::kJsonl) source.fields = {field};
  return read_records(source);
}

bool is_jsonl_name(std::string name) {
  if (std::filesystem::path(name).extension() == ".gz") name.resize(name.size() - 3);
  const std::string extension = std::filesystem::path(name).extension().string();
  return extension == ".jsonl" || extension == ".ndjson" || extension == ".json";
}

// Code points: good enough for the scripts that stand in file names and numbers.
size_t width(const std::string& cell) {
  return decode_utf8(cell).size();
}

}  // namespace

void add_eval_options(Command& command, EvalOptions& options) {
  command.add_flag("--json", options.json, "One JSON object instead of a table");
  command.add_option("--output", options.output, "Write the result to this file instead of stdout");
  command.add_option("--field", options.field, "Key of the text in JSONL records")->capture_default_str();
}

Texts read_texts(const std::string& role, const std::string& file, const EvalOptions& options) {
  Texts texts{role, file, {}};
  texts.records =
      read_as(file, is_jsonl_name(file) ? RecordFormat::kJsonl : RecordFormat::kLines, options.field);
  if (texts.records.empty()) usage_error(file, ": no records; --", role, " needs one text a line");
  if (!is_jsonl_name(file) && is_record_with(texts.records.front(), options.field)) {
    if (file == "-") usage_error("standard input holds JSONL; give it as a file whose name ends in .jsonl");
    log_info(cat(file, ": read as JSONL, because its first line is a record with \"", options.field, "\""));
    texts.records = read_as(file, RecordFormat::kJsonl, options.field);
  }
  return texts;
}

void require_equal_counts(const Texts& first, const Texts& second) {
  if (first.records.size() == second.records.size()) return;
  usage_error("--", first.role, " ", first.file, " has ", first.records.size(), " records, but --",
              second.role, " ", second.file, " has ", second.records.size(),
              "; line i of the one is scored against line i of the other, so the counts must be equal");
}

OrderedJson generation_of(const std::string& samples) {
  const std::string file = samples + ".json";
  if (samples == "-" || !std::filesystem::is_regular_file(file)) return nullptr;
  OrderedJson record = parse_json<OrderedJson>(read_file(file));
  if (text_in(record, "tool") != "elf-sample") return nullptr;
  record.erase("seconds");  // says nothing about the texts
  return record;
}

void print_figures(const EvalOptions& options, const std::string& command, OrderedJson figures,
                   const std::vector<const Texts*>& inputs, const std::string& table) {
  std::string text = table;
  if (options.json) {
    figures["record"] = kRecordVersion;
    figures["command"] = command;
    figures["tool"] = cat("elf-eval ", ELF_VERSION, " (revision ", ELF_GIT_REVISION, ")");
    for (const Texts* input : inputs) {
      const std::string hash = input->file == "-" ? "standard input" : digest_of_file(input->file);
      figures["inputs"].push_back({{"role", input->role},
                                   {"file", input->file},
                                   {"records", input->records.size()},
                                   {"digest", hash}});
    }
    figures["generation"] = generation_of(inputs.front()->file);
    text = figures.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  }
  write_result(options.output, text);
}

void write_result(const std::string& output, const std::string& text) {
  if (output.empty()) {
    std::cout << text << std::flush;
  } else {
    write_file(output, text);
  }
}

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - width(row[i]), ' ');
      text += i == 0 ? row[i] + (row.size() > 1 ? padding : "") : "  " + padding + row[i];
    }
    text += "\n";
  }
  return text;
}

std::string fixed(double value, int digits) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

std::string short_number(double value) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return fixed(value, unit == 0 ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0) + kUnits[unit];
}

std::string percent(double share) {
  return fixed(100 * share, 1) + " %";
}

}  // namespace elf::app
