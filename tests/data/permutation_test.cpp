#include "elf/data/permutation.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/errors.h"

namespace elf {
namespace {

std::vector<int64_t> order(int64_t n, uint64_t seed, uint64_t epoch) {
  const Permutation permutation(n, seed, epoch);
  std::vector<int64_t> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(permutation(i));
  return values;
}

TEST(Permutation, IsABijection) {
  for (const int64_t n :
       {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 37, 64, 65, 100, 255, 1000, 1023, 1024, 1025, 4097, 65537}) {
    for (const uint64_t epoch : {0, 1, 2}) {
      std::vector<bool> seen(static_cast<size_t>(n), false);
      for (const int64_t value : order(n, 5, epoch)) {
        ASSERT_TRUE(value >= 0 && value < n) << n;
        ASSERT_FALSE(seen[static_cast<size_t>(value)]) << n;
        seen[static_cast<size_t>(value)] = true;
      }
    }
  }
}

TEST(Permutation, DiffersByEpochAndSeedOnly) {
  EXPECT_EQ(order(1000, 1, 2), order(1000, 1, 2));
  EXPECT_NE(order(1000, 1, 2), order(1000, 1, 3));
  EXPECT_NE(order(1000, 1, 2), order(1000, 2, 2));
  EXPECT_NE(order(10, 1, 0), order(10, 1, 1));
}

// Each index goes to each place equally often: 10,000 epochs, 1000 expected a cell, standard deviation 30;
// five of them allowed.
TEST(Permutation, SpreadsEvenly) {
  constexpr int kThings = 10, kEpochs = 10000;
  std::vector<int> counts(kThings * kThings, 0);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const Permutation permutation(kThings, 3, static_cast<uint64_t>(epoch));
    for (int i = 0; i < kThings; ++i) ++counts[static_cast<size_t>(i * kThings + permutation(i))];
  }
  for (const int count : counts) EXPECT_NEAR(count, kEpochs / kThings, 150);
}

// Neighbours do not stay neighbours: of 100,000 steps i -> i + 1 about one in 50,000 leads to a neighbour.
TEST(Permutation, SeparatesNeighbours) {
  const Permutation permutation(100000, 3, 0);
  int neighbours = 0;
  for (int64_t i = 0; i + 1 < 100000; ++i) neighbours += std::abs(permutation(i) - permutation(i + 1)) == 1;
  EXPECT_LT(neighbours, 15);
}

TEST(Permutation, ReachesFarWithoutMemory) {
  const int64_t n = int64_t{1} << 40;
  const Permutation permutation(n, 1, 0);
  EXPECT_NE(permutation(0), permutation(n - 1));
  EXPECT_LT(permutation(n - 1), n);
}

TEST(Permutation, RefusesWhatIsOutside) {
  test::usage_message([] { Permutation(0, 1, 1); });
  test::usage_message([] { Permutation(5, 1, 1)(5); });
  test::usage_message([] { Permutation(5, 1, 1)(-1); });
}

}  // namespace
}  // namespace elf
