#include "hook.h"

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

#include "elf/base/error.h"
#include "elf/base/json.h"
#include "elf/base/log.h"
#include "elf/train/checkpoint.h"

namespace elf {
namespace {

using nlohmann::ordered_json;

// The object that is all of `text`, or its last line; {} when neither is one.
ordered_json object_in(std::string text) {
  ordered_json figures = parse_json<ordered_json>(text);
  if (figures.is_object()) return figures;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t line = text.rfind('\n');
  if (line != std::string::npos) figures = parse_json<ordered_json>(text.substr(line + 1));
  return figures.is_object() ? figures : ordered_json::object();
}

}  // namespace

nlohmann::ordered_json hook_figures(const std::string& command, const std::filesystem::path& run,
                                    int64_t step) {
  const auto checkpoint = checkpoint_path(run / "checkpoints", step);
  ::setenv("ELF_RUN", run.c_str(), 1);
  ::setenv("ELF_STEP", std::to_string(step).c_str(), 1);
  ::setenv("ELF_CHECKPOINT", checkpoint.c_str(), 1);
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string out;
  char buffer[4096];
  for (size_t count; pipe != nullptr && (count = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    out.append(buffer, count);
  const int status = pipe == nullptr ? -1 : ::pclose(pipe);
  if (status != 0) {
    log_warning(cat("train.hook failed at step ", step, " (exit code ",
                    WIFEXITED(status) ? WEXITSTATUS(status) : -1, "): ", command));
    return nlohmann::ordered_json::object();
  }
  return object_in(out);
}

}  // namespace elf
