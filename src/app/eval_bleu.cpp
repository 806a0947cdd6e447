// elf-eval bleu
#include <algorithm>
#include <memory>
#include <optional>

#include "cli_core.h"
#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/metrics/bleu.h"
#include "elf/metrics/text_checks.h"
#include "eval_common.h"

namespace elf::app {
namespace {

constexpr int64_t kManyTokenizedPeriods = 100;  // as sacreBLEU
constexpr double kMuchCjk = 0.3;

struct Options {
  EvalOptions eval;
  std::string hypotheses, tokenizer = "13a", smoothing = "exp";
  std::vector<std::string> references;
  std::optional<double> smooth_value;
  bool lowercase = false, effective_order = false, empty_is_missing = false, force = false;

  BleuOptions bleu() const {
    BleuOptions options;
    options.tokenizer = parse_bleu_tokenizer(tokenizer);
    options.lowercase = lowercase;
    options.effective_order = effective_order;
    options.smoothing = parse_bleu_smoothing(smoothing);
    options.smooth_value = smooth_value;
    return options;
  }
};

ReferenceStream stream_of(const Texts& texts, bool empty_is_missing) {
  ReferenceStream stream;
  for (const std::string& text : texts.records) {
    stream.push_back(text.empty() && empty_is_missing ? std::nullopt : std::make_optional(text));
  }
  return stream;
}

void warn(const Options& options, const Texts& hypotheses, const std::vector<Texts>& references) {
  if (options.force) return;
  const int64_t tokenized = count_tokenized_periods(hypotheses.records);
  if (tokenized >= kManyTokenizedPeriods) {
    log_warning(
        cat(hypotheses.file, ": ", tokenized,
            " texts end in a blank and a full stop; they look tokenized already, which changes the score. "
            "Score detokenized text (--force silences this)"));
  }
  if (options.tokenizer == "13a") {
    double share = cjk_share(hypotheses.records);
    for (const Texts& texts : references) share = std::max(share, cjk_share(texts.records));
    if (share > kMuchCjk) {
      log_warning(
          cat(percent(share),
              " of the characters are Chinese, Japanese or Korean, which the tokenizer 13a does not split; "
              "use --tokenize zh or char"));
    }
  }
  if (references.size() == 1) {
    const auto& records = references[0].records;
    const auto with_tab = std::find_if(records.begin(), records.end(), [](const std::string& text) {
      return text.find('\t') != std::string::npos;
    });
    if (with_tab != records.end()) {
      log_warning(cat(references[0].file, ":", with_tab - records.begin() + 1,
                      ": holds a tab, but is read as one reference a line; several references go into one "
                      "file each: --ref A --ref B"));
    }
  }
}

OrderedJson figures_of(const BleuScore& score, const BleuOptions& options) {
  return {{"score", score.score},           {"precisions", score.precisions}, {"bp", score.bp},
          {"sys_len", score.sys_len},       {"ref_len", score.ref_len},       {"signature", score.signature},
          {"lowercase", options.lowercase}, {"counts", score.counts},         {"totals", score.totals}};
}

void run_bleu(const Options& options) {
  const Texts hypotheses = read_texts("hyp", options.hypotheses, options.eval);
  std::vector<Texts> references;
  std::vector<ReferenceStream> streams;
  for (const std::string& file : options.references) {
    references.push_back(read_texts("ref", file, options.eval));
    require_equal_counts(hypotheses, references.back());
    streams.push_back(stream_of(references.back(), options.empty_is_missing));
  }
  warn(options, hypotheses, references);
  BleuOptions asked = options.bleu(), other = asked;
  other.lowercase = !asked.lowercase;
  const BleuScore score = corpus_bleu(hypotheses.records, streams, asked);
  std::string table;
  if (!options.eval.json) {  // people see both cases: which one a published figure means is often unclear
    const BleuScore second = corpus_bleu(hypotheses.records, streams, other);
    const BleuScore &cased = asked.lowercase ? second : score, &lower = asked.lowercase ? score : second;
    table = "cased        " + bleu_line(cased) + "\nlower-cased  " + bleu_line(lower) + "\nsignature    " +
            score.signature + "\n";
  }
  std::vector<const Texts*> inputs = {&hypotheses};
  for (const Texts& texts : references) inputs.push_back(&texts);
  print_figures(options.eval, figures_of(score, asked), inputs, table);
}

}  // namespace

EvalCommand add_bleu_command(CLI::App& eval) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = eval.add_subcommand("bleu", "Corpus BLEU, equal to sacreBLEU 2.6.0");
  command->add_option("--hyp", options->hypotheses, "Hypotheses, one a line, or JSONL")->required();
  command
      ->add_option("--ref", options->references,
                   "References, one for each hypothesis; repeat for several references")
      ->required();
  command->add_option("--tokenize", options->tokenizer, "13a, intl, zh, char or none")->capture_default_str();
  command->add_flag("--lowercase", options->lowercase, "The score (of --json) is that of lower-cased text");
  command->add_flag("--effective-order", options->effective_order,
                    "Leave out n-gram orders that short texts do not have");
  command->add_option("--smooth", options->smoothing, "exp, floor, add-k or none")->capture_default_str();
  command->add_option("--smooth-value", options->smooth_value,
                      "For floor (default 0.1) and add-k (default 1)");
  command->add_flag("--empty-ref-is-missing", options->empty_is_missing,
                    "An empty line of a reference file means: no such reference");
  command->add_flag("--force", options->force, "No warnings about tokenized or unsuitable text");
  add_eval_options(*command, options->eval);
  with_examples(
      *command,
      "  elf-eval bleu --hyp out.txt --ref ref.txt                                # cased and lower-cased\n"
      "  elf-eval bleu --hyp out.jsonl --ref ref.txt --lowercase --effective-order --json   # as the ELF "
      "paper on WMT14\n"
      "  elf-eval bleu --hyp zh.txt --ref ref0.txt --ref ref1.txt --tokenize zh");
  return {command, [options] { run_bleu(*options); }};
}

}  // namespace elf::app
