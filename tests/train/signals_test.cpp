#include "elf/train/signals.h"

#include <gtest/gtest.h>

#include <csignal>

namespace elf {
namespace {

// The rounds of one process are watched as a whole and one by one.
TEST(SignalWatch, OneWithinAnotherSharesItsSignal) {
  {
    const SignalWatch whole("TERM");
    {
      const SignalWatch first("TERM USR1");
      EXPECT_FALSE(first.stop_requested());
      std::raise(SIGTERM);
      EXPECT_EQ(first.name(), "SIGTERM");
    }
    EXPECT_TRUE(whole.stop_requested());
    EXPECT_TRUE(SignalWatch("TERM").stop_requested());
    EXPECT_TRUE(whole.stop_requested());
  }
  EXPECT_FALSE(SignalWatch("TERM").stop_requested());
}

}  // namespace
}  // namespace elf
