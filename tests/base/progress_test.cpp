// Durations, and the lines of a progress bar that is not on a terminal.
#include "elf/base/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace elf {
namespace {

using ::testing::HasSubstr;

TEST(DurationText, MinutesAndHours) {
  EXPECT_EQ(duration_text(0), "0:00");
  EXPECT_EQ(duration_text(-3), "0:00");
  EXPECT_EQ(duration_text(59.4), "0:59");
  EXPECT_EQ(duration_text(59.6), "1:00");
  EXPECT_EQ(duration_text(245), "4:05");
  EXPECT_EQ(duration_text(3599.5), "1:00:00");
  EXPECT_EQ(duration_text(3723), "1:02:03");
  EXPECT_EQ(duration_text(360000), "100:00:00");
}

std::string lines_of(int64_t total, bool finish) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress("reading", total, "lines");
    for (int64_t i = 1; i <= 50; ++i) progress.update(i);
    if (finish) progress.finish("loss 0.5");
  }
  return ::testing::internal::GetCapturedStderr();
}

TEST(Progress, OffATerminalQuickWorkGivesOneLine) {
  for (const bool finish : {true, false}) {
    const std::string text = lines_of(50, finish);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    EXPECT_THAT(text, HasSubstr("reading 100% 50/50 lines"));
    EXPECT_THAT(text, HasSubstr("took 0:00"));
    EXPECT_EQ(text.find('\r'), std::string::npos);
    EXPECT_EQ(text.find("loss 0.5") != std::string::npos, finish);
  }
}

TEST(Progress, UnknownTotalHasNoPercentage) {
  const std::string text = lines_of(0, true);
  EXPECT_THAT(text, HasSubstr("reading 50 lines"));
  EXPECT_EQ(text.find('%'), std::string::npos);
}

}  // namespace
}  // namespace elf
