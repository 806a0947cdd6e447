// Configurations in a folder of their own, and the message of the error that reading them throws.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/config/run_config.h"
#include "support/temporary_folder.h"

namespace elf::test {

class Folder : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_file(folder_ / name, content);
    return folder_ / name;
  }

  const TemporaryFolder scratch_;
  const std::filesystem::path folder_ = scratch_.path();
};

// What `read` throws; fails the test when it throws nothing or no error of usage.
template <class Read>
std::string message_of(Read read) {
  try {
    read();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline RunConfig parse(const std::string& yaml, const std::vector<std::string>& assignments = {}) {
  return parse_run_config(yaml, "run.yaml", ".", assignments);
}

inline std::string parse_error(const std::string& yaml, const std::vector<std::string>& assignments = {}) {
  return message_of([&] { parse(yaml, assignments); });
}

// The message holds every part.
inline void expect_parts(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_THAT(message, ::testing::HasSubstr(part));
}

}  // namespace elf::test
