// The figures of sacreBLEU 2.6.0 and rouge_score 0.1.2 under tests/golden/eval.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "elf/base/files.h"
#include "elf/base/json.h"

namespace elf::test {

inline nlohmann::json golden_eval(const std::string& name) {
  return parse_json_or_throw(read_file(std::filesystem::path(ELF_TEST_DIR) / "golden" / "eval" / name));
}

}  // namespace elf::test
