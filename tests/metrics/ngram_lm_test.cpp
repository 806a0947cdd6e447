// The n-gram model against probabilities worked out by hand, and against what must hold for any text.
#include "elf/metrics/ngram_lm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "elf/base/error.h"

namespace elf {
namespace {

using Word = NgramModel::Word;

const std::vector<std::string> kVerses = {"in the beginning god created the heaven and the earth",
                                          "and the earth was without form",
                                          "and god said let there be light",
                                          "and there was light",
                                          "and god saw the light that it was good",
                                          "and god divided the light from the darkness",
                                          "and god called the light day",
                                          "and the darkness he called night",
                                          "and the evening and the morning were the first day",
                                          "the earth was good"};

double sum_over_vocabulary(const NgramModel& model, const std::vector<Word>& history) {
  double sum =
      model.probability(history, NgramModel::kEnd) + model.probability(history, NgramModel::kUnknown);
  for (Word word = NgramModel::kUnknown + 1; word <= model.vocabulary_size(); ++word)
    sum += model.probability(history, word);
  return sum;
}

TEST(NgramModel, SumsToOneAfterEveryHistory) {
  for (int order = 1; order <= 5; ++order) {
    const NgramModel model(kVerses, order);
    const Word b = NgramModel::kBegin, u = NgramModel::kUnknown, the = model.word("the"),
               light = model.word("light"), god = model.word("god");
    const std::vector<std::vector<Word>> histories = {
        {}, {b}, {u}, {the}, {b, the}, {b, u}, {u, the}, {god, god}, {the, light}, {b, god, light, the}};
    for (const std::vector<Word>& history : histories) {
      EXPECT_NEAR(sum_over_vocabulary(model, history), 1.0, 1e-12)
          << "order " << order << ", history of " << history.size();
    }
  }
}

TEST(NgramModel, BigramsByHand) {
  // Texts "a b", "a b", "a c". Unigram continuations: a 1 (begin), b 1 (a), c 1 (a), end 2 (b, c), total 5:
  // no unigram is counted three times, so the discounts are the fallback 0.5, 1, 1.5. Vocabulary: a b c end
  // unknown = 5. Bigrams: begin-a 3, a-b 2, a-c 1, b-end 2, c-end 1: n1 = 2, n2 = 2, n3 = 1, n4 = 0; Y = 1/3;
  // D1 = 1/3, D2 = 3/2, D3 = 3.
  const NgramModel model({"a b", "a b", "a c"}, 2);
  const Word a = model.word("a"), b = model.word("b"), c = model.word("c");
  const double left = (3 * 0.5 + 1 * 1.0) / 5, floor = left / 5;
  EXPECT_EQ(model.vocabulary_size(), 5);
  EXPECT_NEAR(model.probability({}, a), 0.5 / 5 + floor, 1e-15);
  EXPECT_NEAR(model.probability({}, NgramModel::kEnd), 1.0 / 5 + floor, 1e-15);
  EXPECT_NEAR(model.probability({}, NgramModel::kUnknown), floor, 1e-15);
  // After a: b twice, c once, total 3; left to the unigrams: D1 + D2.
  const double after_a = (1.0 / 3 + 1.5) / 3;
  EXPECT_NEAR(model.probability({a}, b), (2 - 1.5) / 3 + after_a * (0.5 / 5 + floor), 1e-15);
  EXPECT_NEAR(model.probability({a}, c), (1 - 1.0 / 3) / 3 + after_a * (0.5 / 5 + floor), 1e-15);
  EXPECT_NEAR(model.probability({a}, NgramModel::kUnknown), after_a * floor, 1e-15);
  // At the start: a three times, all of it discounted.
  EXPECT_NEAR(model.probability({NgramModel::kBegin}, a), 0.5 / 5 + floor, 1e-15);
}

TEST(NgramModel, DiscountsFromCountsOfCounts) {
  // Order 1 counts occurrences: end 4 times (four texts), one word once more than needed for every count from
  // 1 to 4 to occur: n1 = 3 (p q r), n2 = 2 (s t), n3 = 1 (u), n4 = 1 (end). Y = 3/7; D1 = 1 - 2Y 2/3 = 3/7,
  // D2 = 2 - 3Y 1/2 = 19/14, D3 = 3 - 4Y = 9/7.
  const NgramModel model({"p q r", "s t u", "s t u", "u"}, 1);
  const double total = 3 + 4 + 3 + 4, left = (3 * 3.0 / 7 + 2 * 19.0 / 14 + 2 * 9.0 / 7) / total,
               floor = left / 8;
  EXPECT_NEAR(model.probability({}, model.word("p")), (1 - 3.0 / 7) / total + floor, 1e-15);
  EXPECT_NEAR(model.probability({}, model.word("s")), (2 - 19.0 / 14) / total + floor, 1e-15);
  EXPECT_NEAR(model.probability({}, model.word("u")), (3 - 9.0 / 7) / total + floor, 1e-15);
}

TEST(NgramModel, ManyRepetitionsComeNearTheRelativeFrequencies) {
  std::vector<std::string> texts;
  for (int i = 0; i < 10000; ++i) texts.push_back(i % 4 == 0 ? "x z" : "x y");
  const NgramModel model(texts, 3);
  const Word x = model.word("x");
  EXPECT_NEAR(model.probability({NgramModel::kBegin, x}, model.word("y")), 0.75, 1e-3);
  EXPECT_NEAR(model.probability({NgramModel::kBegin, x}, model.word("z")), 0.25, 1e-3);
  // One bit every four texts and so on: entropy of the second word over three tokens.
  const double nats = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25)) / 3;
  EXPECT_NEAR(perplexity(model, texts).perplexity, std::exp(nats), 1e-3);
}

TEST(NgramModel, RanksRealAboveShuffledAboveUnknown) {
  const NgramModel model(kVerses);
  const double real = perplexity(model, {"and god saw the earth"}).perplexity;
  const double shuffled = perplexity(model, {"saw the and earth god"}).perplexity;
  const Perplexity unknown = perplexity(model, {"zebra xylophone and god"});
  EXPECT_LT(real, shuffled);
  EXPECT_LT(shuffled, unknown.perplexity);
  EXPECT_DOUBLE_EQ(unknown.oov_rate, 0.5);
  EXPECT_EQ(unknown.tokens, 5);
}

TEST(NgramModel, ReservedNamesAreOrdinaryWords) {
  const NgramModel model({"<s> </s> <unk>"}, 2);
  EXPECT_GT(model.word("</s>"), NgramModel::kUnknown);
  EXPECT_EQ(model.word("other"), NgramModel::kUnknown);
}

TEST(NgramModel, BlankTextsAndRefusals) {
  const NgramModel model({"", "a b"});
  const Perplexity result = perplexity(model, {"", "a b", " "});
  EXPECT_EQ(result.blank, 2);
  EXPECT_EQ(result.texts, 1);
  EXPECT_EQ(result.tokens, 3);
  EXPECT_THROW(perplexity(model, {""}), Error);
  EXPECT_THROW(NgramModel({" "}, 3), Error);
  EXPECT_THROW(NgramModel({"a"}, 0), Error);
  EXPECT_THROW(NgramModel({"a"}, 7), Error);
}

}  // namespace
}  // namespace elf
