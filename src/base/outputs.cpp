#include "elf/base/outputs.h"

#include "elf/base/error.h"

namespace elf {
namespace fs = std::filesystem;

void refuse_overwriting(const fs::path& output, const std::vector<std::string>& inputs) {
  std::error_code error;
  if (output.empty() || output == "-") return;
  const fs::path place = fs::weakly_canonical(output, error);
  for (const std::string& input : inputs) {
    if (input.empty() || input == "-") continue;
    if (fs::equivalent(output, input, error) || place == fs::weakly_canonical(input, error)) {
      usage_error(output.string(), ": is an input as well (", input,
                  ") and would be lost; name another output");
    }
  }
}

}  // namespace elf
