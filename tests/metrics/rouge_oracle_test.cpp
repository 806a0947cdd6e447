// ROUGE and the stemmer against rouge_score 0.1.2 with NLTK: golden/eval/rouge.json. Figures to 1e-12, tokens
// and stems exactly.
#include <gtest/gtest.h>

#include "elf/metrics/rouge.h"
#include "elf/text/porter_stemmer.h"
#include "golden_eval.h"

namespace elf {
namespace {

using nlohmann::json;

constexpr double kTolerance = 1e-12;

void expect_value(const RougeValue& actual, const json& expected, const char* type) {
  EXPECT_NEAR(actual.precision, expected["precision"].get<double>(), kTolerance) << type;
  EXPECT_NEAR(actual.recall, expected["recall"].get<double>(), kTolerance) << type;
  EXPECT_NEAR(actual.fmeasure, expected["fmeasure"].get<double>(), kTolerance) << type;
}

void expect_score(const RougeScore& actual, const json& expected) {
  expect_value(actual.rouge1, expected["rouge1"], "rouge1");
  expect_value(actual.rouge2, expected["rouge2"], "rouge2");
  expect_value(actual.rougeL, expected["rougeL"], "rougeL");
  expect_value(actual.rougeLsum, expected["rougeLsum"], "rougeLsum");
}

TEST(RougeOracle, EveryPairWithAndWithoutStemmer) {
  RougeOptions stemmed;
  stemmed.stemmer = true;
  const json golden = test::golden_eval("rouge.json");
  int compared = 0;
  for (const json& pair : golden["pairs"]) {
    SCOPED_TRACE(pair["name"].get<std::string>());
    const std::string target = pair["target"], prediction = pair["prediction"];
    expect_score(rouge(target, prediction), pair["plain"]);
    expect_score(rouge(target, prediction, stemmed), pair["stemmed"]);
    EXPECT_EQ(rouge_tokens(target), pair["target_tokens"].get<std::vector<std::string>>());
    EXPECT_EQ(rouge_tokens(target, stemmed), pair["target_tokens_stemmed"].get<std::vector<std::string>>());
    EXPECT_EQ(rouge_tokens(prediction, stemmed),
              pair["prediction_tokens_stemmed"].get<std::vector<std::string>>());
    ++compared;
  }
  EXPECT_EQ(compared, 61);
}

TEST(RougeOracle, MeansAsTheElfCodeReportsThem) {  // F-measures, stemmed, times 100
  const json golden = test::golden_eval("rouge.json");
  RougeOptions stemmed;
  stemmed.stemmer = true;
  std::vector<RougeScore> scores;
  for (const json& pair : golden["pairs"]) {
    scores.push_back(
        rouge(pair["target"].get<std::string>(), pair["prediction"].get<std::string>(), stemmed));
  }
  const RougeScore mean = mean_rouge(scores);
  const json& expected = golden["reference_code_means"];
  EXPECT_NEAR(100 * mean.rouge1.fmeasure, expected["rouge1"].get<double>(), 1e-9);
  EXPECT_NEAR(100 * mean.rouge2.fmeasure, expected["rouge2"].get<double>(), 1e-9);
  EXPECT_NEAR(100 * mean.rougeL.fmeasure, expected["rougeL"].get<double>(), 1e-9);
}

TEST(PorterStemmerOracle, EveryStem) {
  const json stems = test::golden_eval("rouge.json")["stems"];
  for (const auto& [word, stem] : stems.items())
    EXPECT_EQ(porter_stem(word), stem.get<std::string>()) << word;
  EXPECT_EQ(stems.size(), 312u);
}

}  // namespace
}  // namespace elf
