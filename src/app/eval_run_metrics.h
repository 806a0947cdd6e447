// The figures of one set of samples, and their summary over seeds.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "elf/metrics/ngram_lm.h"
#include "eval_scorer.h"

namespace elf::app {

struct Samples {
  std::vector<std::string> texts;
  TokenLists ids;  // the model's own tokens
};

// Figures by name, in the order in which they are printed.
using Figures = std::vector<std::pair<std::string, double>>;
struct SampleScores {
  Figures figures;
  std::vector<std::string> degenerate;  // reasons
};
using SeedFigures = std::vector<SampleScores>;  // one for each seed

struct RunMetricOptions {
  ScorerOptions scorer;                   // folder empty: no Gen. PPL
  std::string train, reference;           // files; empty: none
  std::vector<std::string> metrics = {};  // of run_metric_names(), those against references; empty: all
  int ngram_order = 0;                    // of a model of `train` whose perplexity is added; 0: none

  bool wants(const std::string& metric) const;
};
const std::vector<std::string>& run_metric_names();  // bleu, chrf, ter, rouge, match

class RunMetrics {
 public:
  RunMetrics(const RunMetricOptions& options, at::Device device);

  // With references: BLEU, chrF, TER, ROUGE, exact match. Always: entropy, distinct-n, rep-4, length, blanks.
  SampleScores score(const Samples& samples, const std::vector<std::string>& references) const;

  // How each figure was computed.
  OrderedJson protocols(bool with_references) const;

 private:
  std::optional<Gpt2Scorer> scorer_;
  std::optional<NgramModel> ngram_;
  std::vector<std::string> train_, reference_;
  RunMetricOptions options_;
};

// name: {"mean", "standard_error" (null for one seed), "values" by seed}.
OrderedJson summary_json(const SeedFigures& figures);
// "BLEU 12.30 ± 0.21  ..." of the figures that matter most.
std::string summary_line(const SeedFigures& figures);
// "seed 1: entropy 1.20 is below 4.50"
std::vector<std::string> degenerate_seeds(const SeedFigures& figures, const std::vector<uint64_t>& seeds);

}  // namespace elf::app
