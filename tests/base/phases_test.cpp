#include "elf/base/phases.h"

#include <gtest/gtest.h>

#include <thread>

namespace elf {
namespace {

void wait_ms(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST(Phases, CountForThePhaseInnermost) {  // sleeping takes at least its time
  PhaseClock clock;
  const auto start = std::chrono::steady_clock::now();
  {
    const Phase outer("outer");
    wait_ms(2);
    {
      const Phase inner("inner");
      wait_ms(40);
    }
    wait_ms(2);
  }
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - start;
  const Phase open("open");
  EXPECT_EQ(clock.seconds().size(), 2u);
  EXPECT_GE(clock.seconds().at("inner"), 0.040);
  EXPECT_GE(clock.seconds().at("outer"), 0.004);
  EXPECT_LE(clock.seconds().at("outer") + clock.seconds().at("inner"), whole.count());
}

TEST(Phases, AddUpUntilReset) {
  PhaseClock clock;
  for (int i = 0; i < 3; ++i) {
    const Phase phase("a");
    wait_ms(3);
  }
  EXPECT_GE(clock.seconds().at("a"), 0.009);
  clock.reset();
  EXPECT_TRUE(clock.seconds().empty());
}

TEST(Phases, NobodyListensNothingHappens) {
  EXPECT_EQ(in_phase("a", [] { return 7; }), 7);
  PhaseClock clock;
  EXPECT_TRUE(clock.seconds().empty());
}

TEST(Phases, TheClockWaitsForWorkInFlight) {
  int waits = 0;
  PhaseClock clock([&] { ++waits; });
  in_phase("a", [] {});
  EXPECT_EQ(waits, 2);
}

}  // namespace
}  // namespace elf
