// BLEU against sacreBLEU 2.6.0: every set and configuration of golden/eval/bleu.json. Scores, precisions and
// brevity penalty to 1e-9 relative; counts, totals and lengths, tokens, the printed line and the signature
// (but for its version) exactly.
#include <gtest/gtest.h>

#include "elf/metrics/bleu.h"
#include "elf/text/unicode.h"
#include "golden_eval.h"

namespace elf {
namespace {

using nlohmann::json;

BleuOptions options_of(const json& config) {
  BleuOptions options;
  options.tokenizer = parse_bleu_tokenizer(config.value("tokenize", "13a"));
  options.lowercase = config.value("lowercase", false);
  options.effective_order = config.value("use_effective_order", false);
  options.smoothing = parse_bleu_smoothing(config.value("smooth_method", "exp"));
  if (config.contains("smooth_value")) options.smooth_value = config["smooth_value"].get<double>();
  return options;
}

std::string without_version(const std::string& signature) {
  return signature.substr(0, signature.rfind("|version:"));
}

void expect_close(double actual, double expected, const char* what) {
  EXPECT_NEAR(actual, expected, 1e-9 * std::max(1.0, std::abs(expected))) << what;
}

TEST(BleuOracle, EverySetAndConfiguration) {
  const json golden = test::golden_eval("bleu.json");
  int compared = 0;
  for (const json& set : golden["sets"]) {
    const auto hypotheses = set["hypotheses"].get<std::vector<std::string>>();
    std::vector<ReferenceStream> references;
    for (const json& stream : set["references"]) {
      ReferenceStream& references_of_stream = references.emplace_back();
      for (const json& text : stream) {
        references_of_stream.push_back(text.is_null() ? std::nullopt
                                                      : std::make_optional(text.get<std::string>()));
      }
    }
    for (const auto& [name, expected] : set["results"].items()) {
      SCOPED_TRACE(set["name"].get<std::string>() + ", " + name);
      const BleuScore score = corpus_bleu(hypotheses, references, options_of(golden["configs"][name]));
      expect_close(score.score, expected["score"], "score");
      expect_close(score.bp, expected["bp"], "bp");
      for (int n = 0; n < 4; ++n) {
        expect_close(score.precisions[n], expected["precisions"][n], "precision");
        EXPECT_EQ(score.counts[n], expected["counts"][n].get<double>()) << "count of order " << n + 1;
        EXPECT_EQ(score.totals[n], expected["totals"][n].get<double>()) << "total of order " << n + 1;
      }
      EXPECT_EQ(score.sys_len, expected["sys_len"].get<int64_t>());
      EXPECT_EQ(score.ref_len, expected["ref_len"].get<int64_t>());
      EXPECT_EQ(bleu_line(score), expected["text"].get<std::string>());
      EXPECT_EQ(without_version(score.signature), without_version(expected["signature"]));
      ++compared;
    }
  }
  EXPECT_EQ(compared, 62 * 13);
}

TEST(BleuOracle, WhatTheElfCodeReports) {  // lower case, effective order
  const json golden = test::golden_eval("bleu.json");
  int compared = 0;
  for (const json& set : golden["sets"]) {
    if (!set.contains("reference_code_bleu")) continue;
    SCOPED_TRACE(set["name"].get<std::string>());
    ReferenceStream references;
    for (const json& text : set["references"][0]) references.push_back(text.get<std::string>());
    BleuOptions options;
    options.lowercase = options.effective_order = true;
    const BleuScore score =
        corpus_bleu(set["hypotheses"].get<std::vector<std::string>>(), {references}, options);
    expect_close(score.score, set["reference_code_bleu"], "score");
    ++compared;
  }
  EXPECT_EQ(compared, 53);
}

TEST(BleuOracle, TokensOf13aAndIntl) {
  const json golden = test::golden_eval("bleu.json");
  int compared = 0;
  for (const json& example : golden["tokenised_after_rstrip"]) {
    const std::string text = example["text"];
    for (const std::string name : {"13a", "intl"}) {
      EXPECT_EQ(bleu_tokenize(parse_bleu_tokenizer(name), strip_space(text, false, true)),
                example[name].get<std::string>())
          << name << " of: " << text;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 2 * 282);
}

}  // namespace
}  // namespace elf
