#include "elf/train/metrics_log.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"

namespace elf {
namespace {

// A line that counts: whole, with a step not beyond `last_step`.
bool keeps(const std::string& line, int64_t last_step) {
  const nlohmann::json parsed = parse_json(line);
  return parsed.is_object() && parsed.contains("step") && parsed["step"].is_number_integer() &&
         parsed["step"].get<int64_t>() <= last_step;
}

}  // namespace

MetricsLog::MetricsLog(std::filesystem::path path, int64_t resume_step) : path_(std::move(path)) {
  std::string kept;
  if (std::filesystem::exists(path_)) {
    std::istringstream lines(read_file(path_));
    for (std::string line; std::getline(lines, line);) {
      if (keeps(line, resume_step)) kept += line + "\n";
    }
  }
  write_file(path_, kept);
}

void MetricsLog::write(const nlohmann::ordered_json& line) {
  std::ofstream out(path_, std::ios::app);
  out << line.dump() << "\n";
  out.flush();
  if (!out) environment_error(path_.string(), ": cannot be written: ", std::strerror(errno));
}

}  // namespace elf
