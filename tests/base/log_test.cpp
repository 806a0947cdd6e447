// Log lines: levels, prefixes, and the file beside stderr.
#include "elf/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "elf/base/error.h"
#include "elf/base/files.h"

namespace elf {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LogLevels, AreNamed) {
  EXPECT_EQ(parse_log_level("debug"), LogLevel::kDebug);
  EXPECT_EQ(parse_log_level("off"), LogLevel::kOff);
  try {
    parse_log_level("loud");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 2);
    EXPECT_THAT(e.what(), HasSubstr("'loud' is not one of debug, info, warning, error, off"));
  }
}

TEST(Log, LinesBelowTheLevelAreNotWritten) {
  const auto path = std::filesystem::path(::testing::TempDir()) / cat("elf-log-", ::getpid(), ".txt");
  log_to_file(path);
  set_log_level(LogLevel::kWarning);
  log_info("quiet");
  log_warning("padding 30 %");
  log_error("no {} braces are read");
  set_log_level(LogLevel::kInfo);
  log_debug("hidden");
  log_info("loud");
  const std::string text = read_file(path);
  std::filesystem::remove(path);
  EXPECT_THAT(text, HasSubstr(" warning: padding 30 %\n"));
  EXPECT_THAT(text, HasSubstr(" error: no {} braces are read\n"));
  EXPECT_THAT(text, HasSubstr(" loud\n"));
  EXPECT_THAT(text, Not(HasSubstr("quiet")));
  EXPECT_THAT(text, Not(HasSubstr("hidden")));
}

TEST(Log, FileThatCannotBeOpened) {
  try {
    log_to_file("/dev/null/none.txt");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(e.what(), HasSubstr("/dev/null/none.txt"));
  }
}

}  // namespace
}  // namespace elf
