// Guidance scales over time and lists of times, as users write them.
#include "elf/config/schedules.h"

#include <gmock/gmock.h>

#include "support/errors.h"

namespace elf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

double at(const char* text, double t) {
  return ScaleSchedule::parse(text, "--cfg").at(t);
}

TEST(ScaleSchedule, ANumberHoldsEverywhere) {
  for (const double t : {0.0, 0.3, 1.0}) EXPECT_EQ(at("2.5", t), 2.5);
  EXPECT_EQ(ScaleSchedule::of(3, "", "--cfg").at(0.5), 3.0);
  EXPECT_EQ(ScaleSchedule::of(3, "2", "--cfg").at(0.5), 2.0);
}

TEST(ScaleSchedule, KnotsAreJoinedByLines) {
  const char* text = "0.2:1,0.6:3,1:0";
  EXPECT_EQ(at(text, 0.0), 1.0);
  EXPECT_EQ(at(text, 0.2), 1.0);
  EXPECT_DOUBLE_EQ(at(text, 0.4), 2.0);
  EXPECT_DOUBLE_EQ(at(text, 0.6), 3.0);
  EXPECT_DOUBLE_EQ(at(text, 0.8), 1.5);
  EXPECT_EQ(at(text, 1.0), 0.0);
}

TEST(ScaleSchedule, AnIntervalIsHalfOpenAndLeavesTheRestUnguided) {
  EXPECT_EQ(at("3@0.2-0.8", 0.19), 1.0);
  EXPECT_EQ(at("3@0.2-0.8", 0.2), 3.0);
  EXPECT_EQ(at("3@0.2-0.8", 0.8), 1.0);
  EXPECT_EQ(at("3@0.2-1", 1.0), 3.0);
}

TEST(ScaleSchedule, SaysWhatIsWrong) {
  const auto message = [](const char* text) {
    return test::usage_message([&] { ScaleSchedule::parse(text, "--cfg"); });
  };
  EXPECT_THAT(message("two"), HasSubstr("--cfg: found 'two'"));
  EXPECT_THAT(message("nan"), HasSubstr("finite"));
  EXPECT_THAT(message("3@0.2"), HasSubstr("SCALE@FROM-TO"));
  EXPECT_THAT(message("3@0.8-0.2"), HasSubstr("empty interval"));
  EXPECT_THAT(message("3@0-1.5"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(message("0:1,0:2"), HasSubstr("do not rise"));
  EXPECT_THAT(message("0:1,2"), HasSubstr("TIME:SCALE"));
}

TEST(Times, EndsAreAdded) {
  EXPECT_THAT(parse_times("0.1,0.3", "--times"), ElementsAre(0.0, 0.1, 0.3, 1.0));
  EXPECT_THAT(parse_times("0,0.5,1", "--times"), ElementsAre(0.0, 0.5, 1.0));
  EXPECT_THAT(parse_times("1", "--times"), ElementsAre(0.0, 1.0));
  for (const char* bad : {"", "0.3,0.1", "0.3,0.3", "-0.1", "1.1", "0.1;0.2", "0.1,"}) {
    EXPECT_THAT(test::usage_message([&] { parse_times(bad, "--times"); }), HasSubstr("--times")) << bad;
  }
}

}  // namespace
}  // namespace elf
