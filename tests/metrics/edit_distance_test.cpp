// Levenshtein distance against known values and against the definition itself, by recursion.
#include "elf/metrics/edit_distance.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "elf/base/error.h"

namespace elf {
namespace {

// The definition: exponential time.
int64_t plain_distance(std::u32string_view a, std::u32string_view b) {
  if (a.empty() || b.empty()) return static_cast<int64_t>(a.size() + b.size());
  if (a.front() == b.front()) return plain_distance(a.substr(1), b.substr(1));
  return 1 + std::min({plain_distance(a.substr(1), b), plain_distance(a, b.substr(1)),
                       plain_distance(a.substr(1), b.substr(1))});
}

TEST(EditDistance, EqualsTheDefinition) {
  const std::vector<std::u32string> words = {U"",         U"a",   U"kitten", U"sitting",
                                             U"ˈʃtʁaːsə", U"aab", U"abaab",  U"😀x"};
  for (const std::u32string& a : words) {
    for (const std::u32string& b : words) EXPECT_EQ(edit_distance(a, b), plain_distance(a, b));
  }
  EXPECT_EQ(edit_distance(U"kitten", U"sitting"), 3);
}

TEST(Match, HandCounted) {
  const MatchScore score = match({"haus", " maʊs ", "katze"}, {"haʊs", "maʊs", "hund"});
  // Edits: u -> ʊ: 1; none; katze -> hund: 5. References: 4 + 4 + 4 code points.
  EXPECT_DOUBLE_EQ(score.exact, 1.0 / 3);
  EXPECT_EQ(score.edits, 6);
  EXPECT_EQ(score.reference_length, 12);
  EXPECT_DOUBLE_EQ(score.cer, 0.5);
  EXPECT_EQ(score.pairs, 3);
}

TEST(Match, EmptyReferences) {
  EXPECT_EQ(match({}, {}).cer, 0.0);
  EXPECT_EQ(match({"abc"}, {""}).cer, 3.0);
  EXPECT_THROW(match({"a"}, {}), Error);
}

}  // namespace
}  // namespace elf
