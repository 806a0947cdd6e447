// ROUGE: cases with figures measured with rouge_score 0.1.2.
#include "elf/metrics/rouge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "elf/base/error.h"

namespace elf {
namespace {

TEST(Rouge, SwappedLinesTellLsumFromL) {
  const std::string target = "the cat sat\nthe dog ran", swapped = "the dog ran\nthe cat sat";
  const RougeScore score = rouge(target, swapped);
  EXPECT_DOUBLE_EQ(score.rouge1.fmeasure, 1.0);
  EXPECT_DOUBLE_EQ(score.rouge2.fmeasure, 0.8);
  EXPECT_DOUBLE_EQ(score.rougeL.fmeasure, 0.5);
  EXPECT_DOUBLE_EQ(score.rougeLsum.fmeasure, 1.0);
  EXPECT_DOUBLE_EQ(rouge("the cat sat the dog ran", "the dog ran the cat sat").rougeLsum.fmeasure, 0.5);
}

TEST(Rouge, OnlyAsciiLettersAndDigitsCount) {
  EXPECT_EQ(rouge("สวัสดี", "สวัสดี").rouge1.fmeasure, 0.0);
  EXPECT_EQ(rouge("café crème", "café crème").rouge1.fmeasure, 1.0);
  EXPECT_EQ(rouge("café crème", "cafe creme").rouge1.fmeasure, 0.0);
  EXPECT_EQ(rouge("anything", "").rougeLsum.fmeasure, 0.0);
}

TEST(Rouge, Stemmer) {
  RougeOptions stemmed;
  stemmed.stemmer = true;
  const std::string target = "the runners are running gas", prediction = "the runner is run gases";
  EXPECT_DOUBLE_EQ(rouge(target, prediction).rouge1.fmeasure, 0.2);
  EXPECT_DOUBLE_EQ(rouge(target, prediction, stemmed).rouge1.fmeasure, 0.6);
}

// The plain table that the package fills.
int64_t plain_lcs(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::vector<int64_t>> table(a.size() + 1, std::vector<int64_t>(b.size() + 1, 0));
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j)
      table[i][j] =
          a[i - 1] == b[j - 1] ? table[i - 1][j - 1] + 1 : std::max(table[i - 1][j], table[i][j - 1]);
  }
  return table[a.size()][b.size()];
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word + " ";
  return text;
}

TEST(Rouge, LcsInBitsIsThatOfThePlainTable) {
  std::mt19937 random(5);
  RougeScorer scorer;
  for (const size_t longest : {1u, 5u, 63u, 64u, 65u, 130u, 300u}) {
    for (int round = 0; round < 8; ++round) {
      std::vector<std::string> target(longest), prediction(1 + random() % (2 * longest));
      for (std::string& word : target) word = "w" + std::to_string(random() % (2 + longest / 3));
      for (std::string& word : prediction) word = "w" + std::to_string(random() % (3 + longest / 2));
      const RougeScore score = scorer.score(joined(target), joined(prediction));
      EXPECT_NEAR(score.rougeL.recall * static_cast<double>(longest),
                  static_cast<double>(plain_lcs(target, prediction)), 1e-9);
      // A second line has each line's LCS marked in a plain table.
      EXPECT_NEAR(scorer.score(joined(target), joined(prediction) + "\nunseen").rougeLsum.recall,
                  score.rougeL.recall, 1e-12);
    }
  }
}

TEST(Rouge, UnicodeTokens) {
  RougeOptions options;
  options.tokenizer = RougeTokenizer::kUnicode;
  options.stemmer = true;
  EXPECT_THAT(rouge_tokens("Straße, RUNNERS!  don't 3.14 नमस्ते दुनिया", options),
              testing::ElementsAre("straße", "runner", "don't", "3.14", "नमस्ते", "दुनिया"));
  EXPECT_GT(rouge_tokens("今天是个好天气", options).size(), 2u);
  EXPECT_EQ(rouge_tokens("Ελλάδα", {}).size(), 0u);
}

TEST(Rouge, Sentences) {
  RougeOptions options;
  options.split_sentences = true;
  const RougeScore score = rouge("The cat sat. The dog ran.", "The dog ran. The cat sat.", options);
  EXPECT_DOUBLE_EQ(score.rougeLsum.fmeasure, 1.0);
  EXPECT_DOUBLE_EQ(score.rougeL.fmeasure, 0.5);
}

TEST(Rouge, IntervalsHoldTheMean) {
  const std::vector<RougeScore> scores = {rouge("a b c", "a b"), rouge("a b c", "x"), rouge("d e", "d e")};
  const RougeInterval interval = rouge_interval(scores, 100, 1);
  EXPECT_LE(interval.low.rouge1.recall, mean_rouge(scores).rouge1.recall);
  EXPECT_GE(interval.high.rouge1.recall, mean_rouge(scores).rouge1.recall);
  EXPECT_THROW(rouge_interval({}), Error);
  EXPECT_THROW(rouge_interval(scores, 1), Error);
}

TEST(Rouge, MeanOfNoneIsZero) {
  EXPECT_EQ(mean_rouge({}).rougeL.recall, 0.0);
}

}  // namespace
}  // namespace elf
