// A folder in which elf-convert and elf-inspect run as a user runs them.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "elf/base/json.h"
#include "support/command.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace elf::test {

class ConvertFixture : public ::testing::Test {
 protected:
  Outcome run(const std::string& command) { return test::run(folder_.path(), command); }
  // The command, which must work; its stdout.
  std::string done(const std::string& command) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 0) << command << "\n" << outcome.err;
    return outcome.out;
  }
  // The command, which must end with exit code 2; its stderr.
  std::string refused(const std::string& command) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.code, 2) << command << "\n" << outcome.out << outcome.err;
    return outcome.err;
  }
  nlohmann::json inspected(const std::string& path, const std::string& options = "") {
    return parse_json_or_throw(done("elf-inspect " + path + " --json " + options));
  }
  std::string import(const std::string& file, const std::string& out, const std::string& more = "") {
    return done("elf-convert import " + golden("elf_tiny/" + file).string() + " --config " +
                golden("elf_tiny/config.json").string() + " --out " + out + " " + more);
  }
  TemporaryFolder folder_;
};

}  // namespace elf::test
