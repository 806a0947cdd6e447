// Log lines: levels, prefixes, and the file beside stderr.
#include "elf/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

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

// One process may make several runs, one after the other.
TEST(Log, AFileEndsWhereTheNextBegins) {
  const std::filesystem::path folder(::testing::TempDir());
  const auto first = folder / cat("elf-log-first-", ::getpid(), ".txt"),
             second = folder / cat("elf-log-second-", ::getpid(), ".txt");
  log_to_file(first);
  log_info("of the first");
  log_to_file(second);
  log_info("of the second");
  end_log_file();
  log_info("of none");
  const std::string of_first = read_file(first), of_second = read_file(second);
  std::filesystem::remove(first);
  std::filesystem::remove(second);
  EXPECT_THAT(of_first, HasSubstr(" of the first\n"));
  EXPECT_THAT(of_first, Not(HasSubstr("of the second")));
  EXPECT_THAT(of_second, HasSubstr(" of the second\n"));
  EXPECT_THAT(of_second, Not(HasSubstr("of the first")));
  EXPECT_THAT(of_first + of_second, Not(HasSubstr("of none")));
}

// A reader or a watcher may have something to say at the moment a run begins or ends.
TEST(Log, FilesChangeWhileOthersWrite) {
  const auto path = std::filesystem::path(::testing::TempDir()) / cat("elf-log-", ::getpid(), ".txt");
  std::atomic<bool> done{false};
  std::atomic<int> lines{0};
  std::thread other([&] {
    while (!done) {
      log_info("from another thread");
      ++lines;
    }
  });
  for (int i = 0; i < 200 || lines < 200; ++i) {
    log_to_file(path);
    end_log_file();
  }
  done = true;
  other.join();
  std::filesystem::remove(path);
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
