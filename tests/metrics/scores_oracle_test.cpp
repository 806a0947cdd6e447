// chrF, TER, sentence scores and bootstrap against sacreBLEU 2.6.0, ROUGE's intervals against rouge_score
// 0.1.2 (golden/eval/scores.json, made by tests/oracle/eval_scores.py).
#include <gtest/gtest.h>

#include "elf/metrics/bleu.h"
#include "elf/metrics/chrf.h"
#include "elf/metrics/rouge.h"
#include "elf/metrics/ter.h"
#include "elf/text/words.h"
#include "golden_eval.h"

namespace elf {
namespace {

using nlohmann::json;

struct Corpus {
  std::string name;
  std::vector<std::string> hypotheses;
  std::vector<ReferenceStream> references;
};

std::vector<Corpus> corpora() {
  json sets = test::golden_eval("bleu.json")["sets"];
  const json scores = test::golden_eval("scores.json");
  for (const json& extra : scores["extra"]) sets.push_back(extra);
  std::vector<Corpus> result;
  for (const json& set : sets) {
    Corpus& corpus = result.emplace_back();
    corpus.name = set["name"];
    corpus.hypotheses = set["hypotheses"].get<std::vector<std::string>>();
    for (const json& stream : set["references"]) {
      ReferenceStream& references = corpus.references.emplace_back();
      for (const json& text : stream)
        references.push_back(text.is_null() ? std::nullopt : std::make_optional(text.get<std::string>()));
    }
  }
  return result;
}

// All corpora with one plain reference as one, and the baseline of the paired test.
Corpus joined(std::vector<std::string>* baseline = nullptr) {
  Corpus all{"all", {}, {{}}};
  for (const Corpus& corpus : corpora()) {
    if (corpus.references.size() != 1) continue;
    bool whole = true;
    for (const auto& text : corpus.references[0]) whole = whole && text.has_value();
    if (!whole) continue;
    all.hypotheses.insert(all.hypotheses.end(), corpus.hypotheses.begin(), corpus.hypotheses.end());
    all.references[0].insert(all.references[0].end(), corpus.references[0].begin(),
                             corpus.references[0].end());
  }
  for (size_t i = 0; baseline && i < all.hypotheses.size(); ++i) {
    std::vector<std::string_view> words = split_words(all.hypotheses[i]);
    if (i % 5 == 0 && !words.empty()) words.pop_back();
    std::string text;
    for (const std::string_view word : words) text += (text.empty() ? "" : " ") + std::string(word);
    baseline->push_back(i % 5 == 0 ? text : all.hypotheses[i]);
  }
  return all;
}

std::string without_version(const std::string& signature) {
  return signature.substr(0, signature.rfind("|version:"));
}

// Name, signature and statistics of one configuration of the golden file.
struct Computed {
  std::string name, signature;
  CorpusStatistics statistics;
};

Computed compute(const std::string& config, const json& options, const Corpus& corpus) {
  if (config.starts_with("chrF")) {
    ChrfOptions chrf;
    chrf.char_order = options.value("char_order", 6);
    chrf.word_order = options.value("word_order", 0);
    chrf.beta = options.value("beta", 2);
    chrf.lowercase = options.value("lowercase", false);
    chrf.whitespace = options.value("whitespace", false);
    chrf.eps_smoothing = options.value("eps_smoothing", false);
    return {chrf_name(chrf), chrf_signature(corpus.references, chrf),
            chrf_statistics(corpus.hypotheses, corpus.references, chrf)};
  }
  TerOptions ter;
  ter.normalized = options.value("normalized", false);
  ter.no_punct = options.value("no_punct", false);
  ter.asian_support = options.value("asian_support", false);
  ter.case_sensitive = options.value("case_sensitive", false);
  return {"TER", ter_signature(corpus.references, ter),
          ter_statistics(corpus.hypotheses, corpus.references, ter)};
}

TEST(ScoresOracle, ChrfAndTerOfEverySetAndConfiguration) {
  const json golden = test::golden_eval("scores.json");
  int compared = 0;
  for (const Corpus& corpus : corpora()) {
    for (const auto& [config, options] : golden["configs"].items()) {
      SCOPED_TRACE(corpus.name + ", " + config);
      const json& expected = golden["results"][corpus.name][config];
      const Computed computed = compute(config, options, corpus);
      EXPECT_NEAR(computed.statistics.corpus_score(), expected["score"].get<double>(), 1e-9);
      EXPECT_EQ(computed.name, expected["name"].get<std::string>());
      EXPECT_EQ(without_version(computed.signature), without_version(expected["signature"]));
      for (size_t i = 0; i < corpus.hypotheses.size(); ++i) {
        EXPECT_NEAR(computed.statistics.score(computed.statistics.segments[i]),
                    expected["sentences"][i].get<double>(), 1e-9)
            << "text " << i << ": " << corpus.hypotheses[i];
      }
      ++compared;
    }
  }
  EXPECT_EQ(compared, (62 + 4) * 9);
}

TEST(ScoresOracle, BleuOfSentences) {
  const json golden = test::golden_eval("scores.json");
  BleuOptions options;
  options.effective_order = true;
  for (const Corpus& corpus : corpora()) {
    const CorpusStatistics statistics = bleu_statistics(corpus.hypotheses, corpus.references, options);
    for (size_t i = 0; i < corpus.hypotheses.size(); ++i) {
      EXPECT_NEAR(bleu_of_sums(statistics.segments[i], options).score,
                  golden["results"][corpus.name]["bleu_sentences"][i].get<double>(), 1e-9)
          << corpus.name << ", text " << i;
    }
  }
}

TEST(ScoresOracle, BootstrapIntervals) {
  const json golden = test::golden_eval("scores.json")["bootstrap"];
  const Corpus all = joined();
  const std::map<std::string, CorpusStatistics> statistics = {
      {"BLEU", bleu_statistics(all.hypotheses, all.references)},
      {"chrF2", chrf_statistics(all.hypotheses, all.references)},
      {"TER", ter_statistics(all.hypotheses, all.references)}};
  for (const auto& [name, corpus] : statistics) {
    const Interval interval = bootstrap_interval(corpus, {200, 12345});
    EXPECT_NEAR(corpus.corpus_score(), golden[name]["score"].get<double>(), 1e-9) << name;
    // sacreBLEU sums in single precision.
    EXPECT_NEAR(interval.mean, golden[name]["mean"].get<double>(), 1e-4) << name;
    EXPECT_NEAR(interval.half_width, golden[name]["half_width"].get<double>(), 1e-4) << name;
  }
}

TEST(ScoresOracle, PairedBootstrap) {
  const json golden = test::golden_eval("scores.json")["paired"];
  std::vector<std::string> baseline;
  const Corpus all = joined(&baseline);
  const std::map<std::string, std::pair<CorpusStatistics, CorpusStatistics>> statistics = {
      {"BLEU", {bleu_statistics(baseline, all.references), bleu_statistics(all.hypotheses, all.references)}},
      {"chrF2", {chrf_statistics(baseline, all.references), chrf_statistics(all.hypotheses, all.references)}},
      {"TER", {ter_statistics(baseline, all.references), ter_statistics(all.hypotheses, all.references)}}};
  for (const auto& [name, pair] : statistics) {
    SCOPED_TRACE(name);
    const PairedResult result = paired_bootstrap(pair.first, pair.second, {300, 12345});
    EXPECT_NEAR(result.baseline, golden[name]["baseline"].get<double>(), 1e-9);
    EXPECT_NEAR(result.system, golden[name]["score"].get<double>(), 1e-9);
    EXPECT_NEAR(result.interval.mean, golden[name]["mean"].get<double>(), 1e-4);
    EXPECT_NEAR(result.interval.half_width, golden[name]["half_width"].get<double>(), 1e-4);
    EXPECT_NEAR(result.p_value, golden[name]["p_value"].get<double>(), 1e-9);
  }
}

TEST(ScoresOracle, DrawsAreNumpys) {
  const json golden = test::golden_eval("scores.json")["numpy_choice"];
  NumpyGenerator generator(12345);
  for (const char* bound : {"1", "2", "7", "1000", "70000"}) {  // in the order in which they were drawn
    for (const json& value : golden[bound])
      EXPECT_EQ(generator.below(static_cast<uint32_t>(std::stoul(bound))), value.get<uint32_t>()) << bound;
  }
}

TEST(ScoresOracle, RougeIntervals) {
  const json golden = test::golden_eval("scores.json")["rouge_intervals"];
  std::vector<RougeScore> scores;
  const json pairs = test::golden_eval("rouge.json")["pairs"];
  for (const json& pair : pairs)
    scores.push_back(
        rouge(pair["target"].get<std::string>(), pair["prediction"].get<std::string>(), {.stemmer = true}));
  const RougeInterval interval = rouge_interval(scores, 250, 12345);
  const auto expect = [&](const RougeScore& score, const char* bound) {
    for (const auto& [name, type] : {std::pair{"rouge1", &RougeScore::rouge1},
                                     {"rouge2", &RougeScore::rouge2},
                                     {"rougeL", &RougeScore::rougeL},
                                     {"rougeLsum", &RougeScore::rougeLsum}}) {
      const json& expected = golden[name][bound];
      EXPECT_NEAR((score.*type).precision, expected[0].get<double>(), 1e-9) << name << " " << bound;
      EXPECT_NEAR((score.*type).recall, expected[1].get<double>(), 1e-9) << name << " " << bound;
      EXPECT_NEAR((score.*type).fmeasure, expected[2].get<double>(), 1e-9) << name << " " << bound;
    }
  };
  expect(interval.low, "low");
  expect(interval.mid, "mid");
  expect(interval.high, "high");
}

}  // namespace
}  // namespace elf
