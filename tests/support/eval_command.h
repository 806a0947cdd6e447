// elf-eval called in this process, with a folder for its files.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "elf/app/tools.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "support/temporary_folder.h"

namespace elf::test {

struct EvalOutcome {
  int code = 0;
  std::string out, err;
  nlohmann::json object() const { return parse_json_or_throw(out); }
};

using EvalTool = int (*)(int argc, char** argv);

inline EvalOutcome call(EvalTool tool, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "elf-eval");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EvalOutcome outcome;
  outcome.code = tool(static_cast<int>(argv.size()), argv.data());
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.err = testing::internal::GetCapturedStderr();
  return outcome;
}

class EvalCommandTest : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) const {
    return folder_.write(name, content);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static EvalOutcome eval(std::vector<std::string> arguments) {
    return call(app::eval, std::move(arguments));
  }

  TemporaryFolder folder_;
};

}  // namespace elf::test
