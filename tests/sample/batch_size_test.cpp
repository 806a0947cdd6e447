// Rows that fit into memory.
#include "elf/sample/batch_size.h"

#include <gtest/gtest.h>

namespace elf {
namespace {

RunConfig published() {
  RunConfig config;  // ELF-B
  config.model.max_length = 1024;
  config.model.vocab_size = 32100;
  return config;
}

TEST(BatchSize, GrowsWithMemoryAndShrinksWithTheModel) {
  const int64_t rows = rows_that_fit(published(), int64_t{8} << 30);
  EXPECT_GT(rows, 1);
  EXPECT_NEAR(static_cast<double>(rows_that_fit(published(), int64_t{16} << 30)) / static_cast<double>(rows),
              2.0, 0.1);
  RunConfig conditional = published();
  conditional.data.max_input_length = 512;  // guidance doubles the rows
  EXPECT_LT(rows_that_fit(conditional, int64_t{8} << 30), rows);
  RunConfig wide = published();
  wide.model.hidden_size *= 4;
  EXPECT_LT(rows_that_fit(wide, int64_t{8} << 30), rows / 3);
  EXPECT_EQ(rows_that_fit(published(), 1), 1);
  EXPECT_GT(rows_that_fit(published(), 0), 1 << 20);  // not known: no limit
}

TEST(BatchSize, MemoryOfThisMachineIsKnown) {
  EXPECT_GT(available_memory(at::kCPU), int64_t{1} << 20);
}

}  // namespace
}  // namespace elf
