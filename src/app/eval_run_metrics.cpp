#include "eval_run_metrics.h"

#include <algorithm>
#include <cmath>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/metrics/bleu.h"
#include "elf/metrics/chrf.h"
#include "elf/metrics/edit_distance.h"
#include "elf/metrics/rouge.h"
#include "elf/metrics/ter.h"
#include "eval_figures.h"

namespace elf::app {
namespace {

// The published settings: WMT14 is scored lower-cased and with effective order, XSum with the stemmer.
BleuOptions cased_bleu() {
  return {};
}
BleuOptions published_bleu() {
  BleuOptions options;
  options.lowercase = options.effective_order = true;
  return options;
}
ChrfOptions chrf_plus_plus() {
  ChrfOptions options;
  options.word_order = 2;
  return options;
}
constexpr RougeOptions kPublishedRouge{.stemmer = true};

void add_rouge(Figures& figures, const std::vector<std::string>& texts,
               const std::vector<std::string>& references) {
  RougeScorer scorer(kPublishedRouge);
  std::vector<RougeScore> scores;
  for (size_t i = 0; i < texts.size(); ++i) scores.push_back(scorer.score(references[i], texts[i]));
  const RougeScore mean = mean_rouge(scores);
  figures.emplace_back("rouge1", 100 * mean.rouge1.fmeasure);
  figures.emplace_back("rouge2", 100 * mean.rouge2.fmeasure);
  figures.emplace_back("rougeL", 100 * mean.rougeL.fmeasure);
  figures.emplace_back("rougeLsum", 100 * mean.rougeLsum.fmeasure);
}

void add_references(Figures& figures, const RunMetricOptions& options, const std::vector<std::string>& texts,
                    const std::vector<std::string>& references) {
  const std::vector<ReferenceStream> streams = {ReferenceStream(references.begin(), references.end())};
  if (options.wants("bleu")) {
    figures.emplace_back("bleu", corpus_bleu(texts, streams, cased_bleu()).score);
    figures.emplace_back("bleu_published", corpus_bleu(texts, streams, published_bleu()).score);
  }
  if (options.wants("chrf")) {
    figures.emplace_back("chrf", corpus_chrf(texts, streams).score);
    figures.emplace_back("chrf++", corpus_chrf(texts, streams, chrf_plus_plus()).score);
  }
  if (options.wants("ter")) figures.emplace_back("ter", corpus_ter(texts, streams).score);
  if (options.wants("rouge")) add_rouge(figures, texts, references);
  if (options.wants("match")) {
    const MatchScore matched = match(texts, references);
    figures.emplace_back("exact_match", matched.exact);
    figures.emplace_back("character_error_rate", matched.cer);
  }
}

void add_gpt2(SampleScores& scores, const GenerationScores& found) {
  Figures& figures = scores.figures;
  figures.emplace_back("ppl", found.perplexity.perplexity());
  figures.emplace_back("entropy", found.perplexity.mean_entropy());
  for (size_t n = 0; n < found.gpt2.distinct.size(); ++n)
    figures.emplace_back(cat("distinct", n + 1), found.gpt2.distinct[n]);
  figures.emplace_back("rep4", found.gpt2.rep4);
  figures.emplace_back("mean_length", found.gpt2.mean_length);
  scores.degenerate = found.degenerate;
}

// Every seed has the same figures.
std::vector<double> values_of(const SeedFigures& seeds, size_t figure) {
  std::vector<double> values;
  for (const SampleScores& seed : seeds) values.push_back(seed.figures[figure].second);
  return values;
}

std::vector<std::string> texts_of(const std::string& role, const std::string& file) {
  return file.empty() ? std::vector<std::string>{} : read_texts(role, file, {}).records;
}

}  // namespace

const std::vector<std::string>& run_metric_names() {
  static const std::vector<std::string> names = {"bleu", "chrf", "ter", "rouge", "match"};
  return names;
}

bool RunMetricOptions::wants(const std::string& metric) const {
  return metrics.empty() || std::find(metrics.begin(), metrics.end(), metric) != metrics.end();
}

RunMetrics::RunMetrics(const RunMetricOptions& options, at::Device device)
    : train_(texts_of("train", options.train)),
      reference_(texts_of("reference", options.reference)),
      options_(options) {
  if (!options.reference.empty() && options.scorer.folder.empty())
    usage_error("--reference: MAUVE needs the features of a GPT-2; give --scorer DIR");
  if (options.ngram_order > 0 && options.train.empty())
    usage_error("--ngram-order: the n-gram model is made of a training text; give --train FILE");
  if (!options.scorer.folder.empty()) scorer_.emplace(options.scorer, device);
  if (options.ngram_order > 0) ngram_.emplace(train_, options.ngram_order);
}

SampleScores RunMetrics::score(const Samples& samples, const std::vector<std::string>& references) const {
  SampleScores scores;
  if (!references.empty()) add_references(scores.figures, options_, samples.texts, references);
  if (scorer_) add_gpt2(scores, scorer_->score(samples.texts, std::nullopt));
  if (ngram_) {
    const Diversity words = diversity(samples.texts);
    const bool none = words.blank == words.samples;
    scores.figures.emplace_back("perplexity",
                                none ? std::nan("") : perplexity(*ngram_, samples.texts).perplexity);
    scores.figures.emplace_back("corpus_entropy", words.corpus_entropy);
  }
  const Diversity own = diversity(samples.ids);
  scores.figures.emplace_back("own_entropy", own.entropy);
  for (size_t n = 0; n < own.distinct.size(); ++n)
    scores.figures.emplace_back(cat("own_distinct", n + 1), own.distinct[n]);
  scores.figures.emplace_back("own_rep4", own.rep4);
  scores.figures.emplace_back("own_mean_length", own.mean_length);
  scores.figures.emplace_back("blank", static_cast<double>(diversity(samples.texts).blank));
  if (!train_.empty()) {
    const Novelty novel = novelty(samples.texts, train_);
    scores.figures.emplace_back("exact_copies", novel.exact_copies);
    scores.figures.emplace_back("new_trigrams", novel.new_trigrams);
  }
  if (!reference_.empty())
    scores.figures.emplace_back("mauve", scorer_->mauve_against(samples.texts, reference_).score.mauve);
  if (!scorer_) scores.degenerate = degeneration(own, samples.ids, options_.scorer.bounds);
  return scores;
}

OrderedJson RunMetrics::protocols(bool with_references) const {
  OrderedJson protocols = {{"degenerate_over", scorer_ ? "GPT-2 tokens" : "own tokens"}};
  if (scorer_) protocols["genppl"] = scorer_->protocol();
  if (!options_.reference.empty()) {
    const MauveOptions mauve;
    protocols["mauve"] = {{"reference", options_.reference},
                          {"digest", digest_of_file(options_.reference)},
                          {"reference_texts", reference_.size()},
                          {"clusters", "a tenth of the smaller set"},
                          {"variance", mauve.variance},
                          {"starts", mauve.starts},
                          {"scaling", mauve.scaling},
                          {"seed", mauve.seed}};
  }
  if (ngram_) {
    protocols["ngram"] = {{"smoothing", "Kneser-Ney"}, {"order", options_.ngram_order}, {"tokens", "words"}};
  }
  if (!options_.train.empty())
    protocols["train"] = {{"file", options_.train}, {"digest", digest_of_file(options_.train)}};
  if (with_references) {
    const std::vector<ReferenceStream> one = {{std::string()}};
    if (options_.wants("bleu")) {
      protocols["bleu"] = bleu_signature(one, cased_bleu());
      protocols["bleu_published"] = bleu_signature(one, published_bleu());
    }
    if (options_.wants("chrf")) {
      protocols["chrf"] = chrf_signature(one, {});
      protocols["chrf++"] = chrf_signature(one, chrf_plus_plus());
    }
    if (options_.wants("ter")) protocols["ter"] = ter_signature(one, {});
    if (options_.wants("rouge")) protocols["rouge"] = "rouge_score 0.1.2, Porter stemmer, F x 100";
  }
  return protocols;
}

OrderedJson summary_json(const SeedFigures& seeds) {
  OrderedJson summary = OrderedJson::object();
  for (size_t i = 0; i < seeds.front().figures.size(); ++i) {
    const std::vector<double> values = values_of(seeds, i);
    OrderedJson list = OrderedJson::array();
    for (const double value : values) list.push_back(number_json(value));
    summary[seeds.front().figures[i].first] = {{"mean", number_json(mean_of(values))},
                                               {"standard_error", number_json(standard_error(values))},
                                               {"values", list}};
  }
  return summary;
}

std::string summary_line(const SeedFigures& seeds) {
  static const std::vector<std::string> shown = {"bleu",    "bleu_published", "chrf",           "ter",
                                                 "rouge1",  "rouge2",         "rougeL",         "ppl",
                                                 "entropy", "perplexity",     "corpus_entropy", "own_entropy",
                                                 "rep4",    "own_rep4",       "exact_copies",   "mauve"};
  std::string line;
  for (size_t i = 0; i < seeds.front().figures.size(); ++i) {
    const std::string& name = seeds.front().figures[i].first;
    if (std::find(shown.begin(), shown.end(), name) == shown.end()) continue;
    const std::vector<double> values = values_of(seeds, i);
    line += cat(line.empty() ? "" : "  ", name, " ", fixed(mean_of(values), 3));
    if (values.size() > 1) line += " ± " + fixed(standard_error(values), 3);
  }
  for (const SampleScores& seed : seeds) {
    if (!seed.degenerate.empty()) return line + "  DEGENERATE: " + seed.degenerate.front();
  }
  return line;
}

std::vector<std::string> degenerate_seeds(const SeedFigures& figures, const std::vector<uint64_t>& seeds) {
  std::vector<std::string> reasons;
  for (size_t i = 0; i < figures.size(); ++i) {
    for (const std::string& reason : figures[i].degenerate)
      reasons.push_back(cat("seed ", seeds[i], ": ", reason));
  }
  return reasons;
}

}  // namespace elf::app
