// elf-eval bleu: BLEU, and beside it chrF, chrF++ and TER of the same texts.
#include <algorithm>
#include <future>
#include <memory>
#include <optional>

#include "cli_core.h"
#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/base/outputs.h"
#include "elf/metrics/bleu.h"
#include "elf/metrics/chrf.h"
#include "elf/metrics/ter.h"
#include "elf/text/sentencepiece_tokenizer.h"
#include "eval_common.h"
#include "eval_guards.h"

namespace elf::app {
namespace {

struct Options {
  EvalOptions eval;
  std::string hypotheses, baseline, sentences, tokenizer = "13a", smoothing = "exp";
  std::vector<std::string> references, metrics = {"bleu"};
  std::optional<double> smooth_value;
  std::optional<int> bootstrap;
  uint64_t seed = Resampling{}.seed;
  bool lowercase = false, effective_order = false, empty_is_missing = false, force = false;
  bool ter_normalized = false, ter_no_punct = false, ter_asian = false, ter_case_sensitive = false;

  bool asks(const char* metric) const {
    return std::find(metrics.begin(), metrics.end(), metric) != metrics.end();
  }
  bool resamples() const { return bootstrap.has_value() || !baseline.empty(); }
  Resampling resampling() const { return {bootstrap.value_or(Resampling{}.resamples), seed}; }
};

// sacreBLEU's name of a known model file, else the file's own name.
std::string model_name(const std::string& file) {
  const std::string name = std::filesystem::path(file).filename().string();
  if (name == "sacrebleu_tokenizer_spm.model") return "flores101";
  if (name == "flores200_sacrebleu_tokenizer_spm.model") return "flores200";
  return "spm-" + name;
}

BleuOptions bleu_options(const Options& o) {
  BleuOptions options;
  options.lowercase = o.lowercase;
  options.effective_order = o.effective_order;
  options.smoothing = parse_bleu_smoothing(o.smoothing);
  options.smooth_value = o.smooth_value;
  if (!o.tokenizer.starts_with("spm:")) {
    options.tokenizer = parse_bleu_tokenizer(o.tokenizer);
    return options;
  }
  const std::string file = o.tokenizer.substr(4);
  const SentencePieceTokenizer model = SentencePieceTokenizer::load(file);
  options.custom_name = model_name(file);
  options.custom_tokenizer = [model](std::string_view segment) {
    std::string tokens;
    for (const std::string& piece : model.encode_as_pieces(segment))
      tokens += (tokens.empty() ? "" : " ") + piece;
    return tokens;
  };
  return options;
}

ReferenceStream stream_of(const Texts& texts, bool empty_is_missing) {
  ReferenceStream stream;
  for (const std::string& text : texts.records)
    stream.push_back(text.empty() && empty_is_missing ? std::nullopt : std::make_optional(text));
  return stream;
}

// One of the scores: how it is computed, its statistics of the hypotheses, and what of it is printed.
struct Scorer {
  std::string key, name, signature;  // "chrf++", "chrF2++"
  std::function<CorpusStatistics(const std::vector<std::string>&)> statistics;
  CorpusStatistics system = {};
  std::optional<Interval> interval = {};
  std::optional<PairedResult> paired = {};
};

std::vector<Scorer> make_scorers(const Options& o, const BleuOptions& bleu,
                                 const std::vector<ReferenceStream>& references) {
  std::vector<Scorer> scorers;
  scorers.push_back(
      {"bleu", "BLEU", bleu_signature(references, bleu),
       [&references, bleu](const auto& texts) { return bleu_statistics(texts, references, bleu); }});
  for (const int word_order : {0, 2}) {
    if (!o.asks(word_order == 0 ? "chrf" : "chrf++")) continue;
    ChrfOptions chrf;
    chrf.word_order = word_order;
    chrf.lowercase = o.lowercase;
    scorers.push_back(
        {word_order == 0 ? "chrf" : "chrf++", chrf_name(chrf), chrf_signature(references, chrf),
         [&references, chrf](const auto& texts) { return chrf_statistics(texts, references, chrf); }});
  }
  if (o.asks("ter")) {
    const TerOptions ter{o.ter_case_sensitive, o.ter_normalized, o.ter_no_punct, o.ter_asian};
    scorers.push_back({"ter", "TER", ter_signature(references, ter), [&references, ter](const auto& texts) {
                         return ter_statistics(texts, references, ter);
                       }});
  }
  return scorers;
}

// "nrefs:1|bs:1000|seed:12345|case:..."
std::string with_resampling(const std::string& signature, const Resampling& resampling) {
  const size_t at = signature.find('|');
  return cat(signature.substr(0, at), "|bs:", resampling.resamples, "|seed:", resampling.seed,
             signature.substr(at));
}

void resample(const Options& o, std::vector<Scorer>& scorers, const Texts* baseline) {
  for (Scorer& scorer : scorers) {
    if (baseline != nullptr) {
      scorer.paired = paired_bootstrap(scorer.statistics(baseline->records), scorer.system, o.resampling());
      scorer.interval = scorer.paired->interval;
    } else {
      scorer.interval = bootstrap_interval(scorer.system, o.resampling());
    }
    scorer.signature = with_resampling(scorer.signature, o.resampling());
  }
}

OrderedJson interval_json(const Scorer& scorer) {
  OrderedJson json = {{"mean", scorer.interval->mean}, {"half_width", scorer.interval->half_width}};
  if (scorer.paired) {
    json["baseline"] = scorer.paired->baseline;
    json["p_value"] = scorer.paired->p_value;
  }
  return json;
}

OrderedJson figures_of(const BleuScore& score, double cased, double lower, const BleuOptions& options,
                       const std::vector<Scorer>& scorers) {
  OrderedJson figures = {{"score", score.score},
                         {"precisions", score.precisions},
                         {"bp", score.bp},
                         {"sys_len", score.sys_len},
                         {"ref_len", score.ref_len},
                         {"signature", scorers.front().signature},
                         {"lowercase", options.lowercase},
                         {"cased", cased},
                         {"lower_cased", lower},
                         {"counts", score.counts},
                         {"totals", score.totals}};
  if (scorers.front().interval) figures["bootstrap"] = interval_json(scorers.front());
  for (size_t i = 1; i < scorers.size(); ++i) {
    OrderedJson& json = figures[scorers[i].key];
    json = {{"score", scorers[i].system.corpus_score()}, {"signature", scorers[i].signature}};
    if (scorers[i].interval) json["bootstrap"] = interval_json(scorers[i]);
  }
  return figures;
}

std::string table_of(const BleuScore& cased, const BleuScore& lower, const std::vector<Scorer>& scorers) {
  std::string table = "cased        " + bleu_line(cased) + "\nlower-cased  " + bleu_line(lower) +
                      "\nsignature    " + scorers.front().signature + "\n";
  for (size_t i = 1; i < scorers.size(); ++i) {
    const std::string name =
        scorers[i].name + std::string(13 - std::min<size_t>(13, scorers[i].name.size()), ' ');
    table += cat(name, fixed(scorers[i].system.corpus_score(), 2), "   ", scorers[i].signature, "\n");
  }
  for (const Scorer& scorer : scorers) {
    if (!scorer.interval) continue;
    table += cat(scorer.name, " over resamples: ", fixed(scorer.interval->mean, 2), " ± ",
                 fixed(scorer.interval->half_width, 2), " (95 %)");
    if (scorer.paired)
      table +=
          cat("; baseline ", fixed(scorer.paired->baseline, 2), ", p = ", fixed(scorer.paired->p_value, 4));
    table += "\n";
  }
  return table;
}

// One JSON object a hypothesis. BLEU of a sentence leaves out the orders that it does not have.
void write_sentences(const Options& o, const BleuOptions& asked, const std::vector<Scorer>& scorers) {
  BleuOptions sentence = asked;
  sentence.effective_order = true;
  std::string lines;
  for (size_t i = 0; i < scorers.front().system.segments.size(); ++i) {
    OrderedJson object = {{"index", i}};
    object["bleu"] = bleu_of_sums(scorers.front().system.segments[i], sentence).score;
    for (size_t k = 1; k < scorers.size(); ++k)
      object[scorers[k].key] = scorers[k].system.score(scorers[k].system.segments[i]);
    lines += object.dump() + "\n";
  }
  write_result(o.sentences, lines);
}

void check_outputs(const Options& o) {
  std::vector<std::string> inputs = o.references;
  inputs.insert(inputs.end(), {o.hypotheses, o.baseline});
  refuse_overwriting(o.eval.output, inputs);
  inputs.push_back(o.eval.output);
  refuse_overwriting(o.sentences, inputs);
}

void run_bleu(const Options& o) {
  check_outputs(o);
  const BleuOptions asked = bleu_options(o);
  const Texts hypotheses = read_texts("hyp", o.hypotheses, o.eval);
  std::vector<Texts> references;
  std::vector<ReferenceStream> streams;
  for (const std::string& file : o.references) {
    references.push_back(read_texts("ref", file, o.eval));
    require_equal_counts(hypotheses, references.back());
    streams.push_back(stream_of(references.back(), o.empty_is_missing));
  }
  std::optional<Texts> baseline;
  if (!o.baseline.empty()) {
    baseline = read_texts("baseline", o.baseline, o.eval);
    require_equal_counts(hypotheses, *baseline);
  }
  if (!o.force) warn_about_translations(hypotheses, references, o.tokenizer);

  std::vector<Scorer> scorers = make_scorers(o, asked, streams);
  // Both cases, always: which one a published figure means is often unclear.
  BleuOptions other = asked;
  other.lowercase = !asked.lowercase;
  std::future<BleuScore> of_other =
      std::async(std::launch::async, [&] { return corpus_bleu(hypotheses.records, streams, other); });
  for (Scorer& scorer : scorers) scorer.system = scorer.statistics(hypotheses.records);
  if (o.resamples()) resample(o, scorers, baseline ? &*baseline : nullptr);
  const BleuScore score = bleu_of_sums(scorers.front().system.sums(), asked), second = of_other.get();
  const BleuScore &cased = asked.lowercase ? second : score, &lower = asked.lowercase ? score : second;

  std::vector<const Texts*> inputs = {&hypotheses};
  for (const Texts& texts : references) inputs.push_back(&texts);
  if (baseline) inputs.push_back(&*baseline);
  if (!o.sentences.empty()) write_sentences(o, asked, scorers);
  print_figures(o.eval, "bleu", figures_of(score, cased.score, lower.score, asked, scorers), inputs,
                table_of(cased, lower, scorers));
}

void add_options(Command& command, Options& o) {
  command.add_option("--hyp", o.hypotheses, "Hypotheses, one a line, or JSONL")->required();
  command
      .add_option("--ref", o.references, "References, one for each hypothesis; repeat for several references")
      ->required();
  command.add_option("--metrics", o.metrics, "bleu, chrf, chrf++, ter: what is printed, BLEU always")
      ->delimiter(',')
      ->one_of({"bleu", "chrf", "chrf++", "ter"})
      ->capture_default_str();
  command
      .add_option("--tokenize", o.tokenizer, "13a, intl, char, zh, none, or spm:FILE, a SentencePiece model")
      ->capture_default_str();
  command.add_flag("--lowercase", o.lowercase, "The score (of --json) is that of lower-cased text");
  command.add_flag("--effective-order", o.effective_order,
                   "Leave out n-gram orders that short texts do not have");
  command.add_option("--smooth", o.smoothing, "exp, floor, add-k or none")->capture_default_str();
  command.add_option("--smooth-value", o.smooth_value, "For floor (default 0.1) and add-k (default 1)");
  command
      .add_option("--bootstrap", o.bootstrap, "Confidence interval over this many resamples (1000 is usual)")
      ->between(2, 1000000);
  command.add_option(
      "--baseline", o.baseline,
      "Texts of another system: paired bootstrap, the probability that the difference is chance");
  command.add_option("--seed", o.seed, "Of the resamples, as sacreBLEU's SACREBLEU_SEED")
      ->capture_default_str();
  command.add_option("--sentences", o.sentences, "JSONL file to write: the scores of each text alone");
  command.add_flag("--ter-normalized", o.ter_normalized, "TER: Tercom's tokenization of punctuation");
  command.add_flag("--ter-no-punct", o.ter_no_punct, "TER: without punctuation");
  command.add_flag("--ter-asian", o.ter_asian, "TER: CJK characters as words (with the two flags before)");
  command.add_flag("--ter-case-sensitive", o.ter_case_sensitive, "TER: cased");
  command.add_flag("--empty-ref-is-missing", o.empty_is_missing,
                   "An empty line of a reference file means: no such reference");
  command.add_flag("--force", o.force, "No warnings about tokenized or unsuitable text");
  add_eval_options(command, o.eval);
}

}  // namespace

EvalCommand add_bleu_command(Command& eval) {
  const auto options = std::make_shared<Options>();
  Command* command = eval.add_subcommand("bleu", "Corpus BLEU, chrF and TER, equal to sacreBLEU 2.6.0");
  add_options(*command, *options);
  with_examples(
      *command,
      "  elf-eval bleu --hyp out.txt --ref ref.txt                                # cased and lower-cased\n"
      "  elf-eval bleu --hyp out.jsonl --ref ref.txt --lowercase --effective-order --json   # as the ELF "
      "paper on WMT14\n"
      "  elf-eval bleu --hyp out.txt --ref ref.txt --metrics bleu,chrf,chrf++,ter --bootstrap 1000\n"
      "  elf-eval bleu --hyp new.txt --baseline old.txt --ref ref.txt             # is new better than old?\n"
      "  elf-eval bleu --hyp zh.txt --ref ref0.txt --ref ref1.txt --tokenize zh");
  return {command, [options] { run_bleu(*options); }};
}

}  // namespace elf::app
