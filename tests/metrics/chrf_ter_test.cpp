// chrF, TER and resampling: worked examples, edge cases, errors. Figures of sacreBLEU 2.6.0 where they are
// not counted by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elf/metrics/bleu.h"
#include "elf/metrics/chrf.h"
#include "elf/metrics/degeneration.h"
#include "elf/metrics/ter.h"
#include "support/errors.h"

namespace elf {
namespace {

using testing::HasSubstr;

std::vector<ReferenceStream> one(const std::string& text) {
  return {{text}};
}

TEST(Chrf, CountedByHand) {
  ChrfOptions options;
  options.char_order = 1;
  options.beta = 1;
  // "ab" against "abc": 2 of 2 and 2 of 3.
  EXPECT_NEAR(corpus_chrf({"a b"}, one("abc"), options).score, 100 * 2 * (2.0 / 3) / (5.0 / 3), 1e-12);
  EXPECT_EQ(corpus_chrf({"abc"}, one("abc")).score, 100);
  EXPECT_EQ(corpus_chrf({""}, one("abc")).score, 0);
  EXPECT_EQ(corpus_chrf({"xyz"}, one("abc")).score, 0);
}

TEST(Chrf, RefusesOrdersItCannotCount) {
  EXPECT_THAT(test::usage_message([] { corpus_chrf({"a"}, one("a"), {.char_order = 7}); }),
              HasSubstr("character order: found 7, expected 1 to 6"));
  EXPECT_THROW(corpus_chrf({"a"}, {{std::nullopt}}), Error);
}

TEST(Ter, MovesCountOnce) {
  EXPECT_EQ(ter_edits({1, 2, 3, 4}, {1, 2, 3, 4}), 0);
  EXPECT_EQ(ter_edits({3, 4, 1, 2}, {1, 2, 3, 4}), 1);
  EXPECT_EQ(ter_edits({}, {1, 2}), 2);
  EXPECT_EQ(ter_edits({1, 2}, {}), 2);
  EXPECT_EQ(ter_edits({5, 6}, {1, 2}), 2);
}

TEST(Ter, EmptyReferences) {
  EXPECT_EQ(corpus_ter({"a b"}, one("")).score, 100);
  EXPECT_EQ(corpus_ter({""}, one("")).score, 0);
}

TEST(Ter, Tokens) {
  EXPECT_EQ(ter_tokenize("  The cat's U.S. 1,000 tail-end. ", {}), "the cat's u.s. 1,000 tail-end.");
  EXPECT_EQ(ter_tokenize("The cat's, 1,000.", {.case_sensitive = true, .normalized = true}),
            "The cat's , 1,000 .");
  EXPECT_EQ(ter_tokenize("A (b)!", {.no_punct = true}), "a b");
}

TEST(Bootstrap, EqualSystemsDoNotDiffer) {
  const CorpusStatistics statistics = bleu_statistics({"a b c d", "e f g h"}, {{"a b c d", "e f g x"}});
  const PairedResult result = paired_bootstrap(statistics, statistics, {100, 1});
  EXPECT_EQ(result.baseline, result.system);
  EXPECT_NEAR(result.p_value, 1.0 / 101, 1e-12);  // no difference exceeds none: sacreBLEU's convention
}

TEST(Bootstrap, Errors) {
  const CorpusStatistics two = bleu_statistics({"a", "b"}, {{"a", "b"}}),
                         single = bleu_statistics({"a"}, {{"a"}});
  EXPECT_THROW(paired_bootstrap(two, single), Error);
  EXPECT_THROW(bootstrap_interval(two, {1, 1}), Error);
}

TEST(BleuSmoothing, RefusesNegativeValues) {
  BleuOptions options;
  options.smoothing = BleuSmoothing::kFloor;
  options.smooth_value = -3;
  EXPECT_THAT(test::usage_message([&] { corpus_bleu({"a"}, one("a"), options); }),
              HasSubstr("found the value -3"));
  options.smooth_value = std::nan("");
  EXPECT_THROW(corpus_bleu({"a"}, one("a"), options), Error);
  options.smoothing = BleuSmoothing::kExp;
  options.smooth_value = 1;
  EXPECT_THROW(corpus_bleu({"a"}, one("a"), options), Error);
}

TEST(Degeneration, RepetitionIsSeenProseIsNot) {
  std::vector<int32_t> prose, loop;
  for (int i = 0; i < 200; ++i) {
    prose.push_back((i * i + i / 3) % 151);
    loop.push_back(i % 3);
  }
  EXPECT_TRUE(degeneration(diversity({prose, prose}), {prose, prose}).empty());
  const auto reasons = degeneration(diversity({loop}), {loop});
  ASSERT_EQ(reasons.size(), 2u);
  EXPECT_THAT(reasons[0], HasSubstr("entropy 1.10 is below 3.97"));
  EXPECT_THAT(reasons[1], HasSubstr("rep-4 0.98 is above 0.20"));
}

TEST(Degeneration, ShortTextsHaveALowerFloor) {
  const std::vector<std::vector<int32_t>> texts = {{1, 2, 3, 4, 5, 6, 1}};
  EXPECT_TRUE(degeneration(diversity(texts), texts).empty());
  EXPECT_FALSE(degeneration(diversity(texts), texts, {.entropy_share = 1}).empty());
  EXPECT_THAT(degeneration(diversity(std::vector<std::vector<int32_t>>{{}, {}}), {{}, {}}),
              testing::ElementsAre("every text is blank"));
}

}  // namespace
}  // namespace elf
