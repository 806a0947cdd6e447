// What elf-sample reads and writes: inputs, one record per sample, the trajectory, and the record of how it
// was made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "elf/base/files.h"

namespace elf::app {

// One input of a conditional model.
struct SampleInput {
  std::string text;   // line breaks are blanks
  nlohmann::json id;  // "id" of a JSONL record; null: none
  int64_t index = 0;  // key of the random numbers: "index" of a JSONL record, else the place in the input
};

struct SampleInputs {
  std::vector<SampleInput> inputs;  // in order, empty ones included
  int64_t with_line_breaks = 0;
};

// Lines of a text file, or the objects of a .jsonl file (or of any file, when `field` is given) with the text
// under `field`
// ("" = text). "-" = standard input. Throws Error (usage) naming file and line.
SampleInputs read_sample_inputs(const std::string& file, const std::string& field);

// One line per sample.
struct SampleRecord {
  int64_t index = 0;
  nlohmann::json id;  // null: none
  std::string text;
  std::vector<int64_t> ids;
  uint64_t seed = 0;
  bool conditional = false;
  std::string condition;
};
std::string text_line(const SampleRecord& record);   // line breaks are blanks, so that records stay lines
std::string jsonl_line(const SampleRecord& record);  // index, id, text, ids, seed, condition

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

}  // namespace elf::app
