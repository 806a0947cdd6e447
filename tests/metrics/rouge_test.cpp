// ROUGE: cases with figures measured with rouge_score 0.1.2.
#include "elf/metrics/rouge.h"

#include <gtest/gtest.h>

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

TEST(Rouge, MeanOfNoneIsZero) {
  EXPECT_EQ(mean_rouge({}).rougeL.recall, 0.0);
}

}  // namespace
}  // namespace elf
