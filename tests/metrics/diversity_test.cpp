// Diversity and novelty: every figure counted by hand.
#include "elf/metrics/diversity.h"

#include <gtest/gtest.h>

#include <cmath>

namespace elf {
namespace {

TEST(Diversity, HandCounted) {
  // Unigrams: 4 + 2 words, {a, b, c, d} different. Bigrams: ab bc cd | aa: all different. One blank text.
  const Diversity result = diversity(std::vector<std::string>{"a b c d", " \t", "a a"});
  EXPECT_EQ(result.samples, 3);
  EXPECT_EQ(result.blank, 1);
  EXPECT_DOUBLE_EQ(result.entropy, (std::log(4.0) + 0.0) / 2);
  EXPECT_NEAR(result.corpus_entropy, 0.5 * std::log(2.0) + 3 * std::log(6.0) / 6, 1e-15);
  EXPECT_DOUBLE_EQ(result.distinct[0], 4.0 / 6);
  EXPECT_DOUBLE_EQ(result.distinct[1], 1.0);
  EXPECT_DOUBLE_EQ(result.distinct[3], 1.0);
  EXPECT_DOUBLE_EQ(result.rep4, 0.0);
  EXPECT_DOUBLE_EQ(result.mean_length, 3.0);
}

TEST(Diversity, RepeatedFourGrams) {
  // a a a a a a: three 4-grams, one different; b c d e: one, no repetition; f: too short to count.
  const Diversity result =
      diversity(std::vector<std::vector<int32_t>>{{1, 1, 1, 1, 1, 1}, {2, 3, 4, 5}, {6}});
  EXPECT_DOUBLE_EQ(result.rep4, (2.0 / 3 + 0.0) / 2);
  EXPECT_DOUBLE_EQ(result.distinct[3], 2.0 / 4);
}

TEST(Diversity, NothingIsZeroNotNan) {
  for (const std::vector<std::string>& texts :
       {std::vector<std::string>{}, std::vector<std::string>{"", " "}}) {
    const Diversity result = diversity(texts);
    EXPECT_EQ(result.entropy, 0.0);
    EXPECT_EQ(result.distinct[0], 0.0);
    EXPECT_EQ(result.mean_length, 0.0);
    EXPECT_EQ(result.blank, result.samples);
  }
}

TEST(Novelty, HandCounted) {
  const std::vector<std::string> training = {"in the beginning was", "let there be light"};
  // Trigrams of the first: both known (a copy but for the blank between). Of the second: "the beginning was"
  // known, "beginning was light" new.
  const Novelty result = novelty({"in the  beginning was", "the beginning was light", ""}, training);
  EXPECT_DOUBLE_EQ(result.new_trigrams, 1.0 / 4);
  EXPECT_DOUBLE_EQ(result.exact_copies, 1.0 / 2);
  EXPECT_EQ(novelty({}, training).new_trigrams, 0.0);
}

}  // namespace
}  // namespace elf
