// The shares behind the warnings, counted by hand.
#include "elf/metrics/text_checks.h"

#include <gtest/gtest.h>

namespace elf {
namespace {

TEST(TextChecks, HandCounted) {
  EXPECT_EQ(count_tokenized_periods({"done .", "done.", " .", ".", "done . "}), 2);
  EXPECT_DOUBLE_EQ(cjk_share({"今天 ab", "カ한"}), 4.0 / 6);
  EXPECT_EQ(cjk_share({" ", ""}), 0.0);
  EXPECT_DOUBLE_EQ(rouge_dropped_share({"Café 12!", "Ω"}), 2.0 / 5);
  EXPECT_EQ(rouge_dropped_share({"123"}), 0.0);
}

}  // namespace
}  // namespace elf
