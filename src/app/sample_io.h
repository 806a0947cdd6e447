// What elf-sample reads and writes: inputs, one record per sample, files that grow line by line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "elf/base/files.h"
#include "elf/text/records.h"

namespace elf::app {

// One input: of a conditional model, or a text with gaps.
struct SampleInput {
  std::string text;       // line breaks are blanks
  nlohmann::json id;      // "id" of a JSONL record; null: none
  int64_t index = 0;      // key of the random numbers: "index" of a JSONL record, else the place in the input
  std::string condition;  // "condition" of a JSONL record: what a conditional model is to answer (--infill)
  std::string place;      // "a.txt:3", for messages
};

// Reads inputs one after the other: lines of a text file, or the objects of a .jsonl file (or of any file,
// when `field` is given) with the text under `field` ("" = text). "-" = standard input. Indices must be below
// `most`.
class SampleInputReader {
 public:
  SampleInputReader(const std::string& file, const std::string& field, int64_t most);
  // False at the end. Throws Error (usage) naming file and line.
  bool next(SampleInput& input);
  int64_t with_line_breaks() const { return with_line_breaks_; }

 private:
  SampleInput parse(const std::string& line, const std::string& place) const;

  std::string field_;
  bool jsonl_;
  int64_t most_, count_ = 0, with_line_breaks_ = 0;
  RecordReader reader_;
};

// One line per sample.
struct SampleRecord {
  int64_t index = 0;
  nlohmann::json id;  // null: none
  std::string text;
  std::vector<int64_t> ids;
  uint64_t seed = 0;
  bool conditional = false;
  std::string condition;
  nlohmann::ordered_json more =
      {};  // further fields: of the choice among candidates, of filled gaps; null: none
};
std::string text_line(const SampleRecord& record);   // line breaks are blanks, so that records stay lines
std::string jsonl_line(const SampleRecord& record);  // index, id, text, ids, seed, condition, more

// Lines to standard output (path empty) or to a file that appears under its name only by finish().
class LineWriter {
 public:
  explicit LineWriter(const std::string& path);
  void write(const std::string& line);
  void flush();  // throws Error (environment) when writing failed
  void finish();

 private:
  std::string path_;
  std::unique_ptr<AtomicFile> file_;
  std::ofstream stream_;
};

// Makes the folder that `path` lies in. Throws Error (usage).
void make_folder_of(const std::string& path);

}  // namespace elf::app
