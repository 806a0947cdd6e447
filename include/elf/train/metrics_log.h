// metrics.jsonl: one JSON object a line, in step order, without gaps or repeats across resumes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace elf {

class MetricsLog {
 public:
  // Appends to `path`; lines of steps beyond `resume_step` (written after the checkpoint that is resumed
  // from) are dropped first.
  MetricsLog(std::filesystem::path path, int64_t resume_step);

  // Adds a line and flushes it. `line` holds "step". Numbers that are not finite become null, as JSON has no
  // others.
  void write(const nlohmann::ordered_json& line);

 private:
  std::filesystem::path path_;
};

}  // namespace elf
