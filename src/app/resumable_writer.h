// A JSONL file that an interruption leaves beside its name, so that the work can go on from there.
#pragma once

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace elf::app {

// Lines go to F.partial, and F.partial.json says what they were made with; finish() gives both their names.
class ResumableWriter {
 public:
  // `settings`: all that the records depend on. With `resume` the whole records of F.partial (or else of F)
  // are kept; a broken end is cut off. Throws Error (usage) naming the first setting that differs from
  // theirs.
  ResumableWriter(std::string path, nlohmann::ordered_json settings, bool resume);
  // Without a record there is nothing to go on with: the files are removed.
  ~ResumableWriter();
  ResumableWriter(const ResumableWriter&) = delete;
  ResumableWriter& operator=(const ResumableWriter&) = delete;

  // The records kept, in order.
  const std::vector<nlohmann::json>& kept() const { return kept_; }
  // Drops those from number `count` on. Before the first write.
  void keep(size_t count);

  void write(const std::string& line);
  void flush();  // throws Error (environment) when writing failed
  void finish();

 private:
  void take_over(const std::string& file, const nlohmann::ordered_json& settings);
  void open();

  std::string path_, partial_;
  std::vector<nlohmann::json> kept_;
  std::vector<std::string> kept_lines_;
  std::ofstream stream_;
  bool written_ = false, finished_ = false;
};

}  // namespace elf::app
