// elf-eval rouge
#include <memory>
#include <optional>

#include "cli_core.h"
#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/base/outputs.h"
#include "elf/metrics/rouge.h"
#include "elf/metrics/text_checks.h"
#include "elf/text/words.h"
#include "eval_common.h"
#include "eval_guards.h"

namespace elf::app {
namespace {

constexpr double kMuchDropped = 0.2;

struct Options {
  EvalOptions eval;
  std::string hypotheses, references, newline, sentences, tokenizer = "default";
  std::optional<int> bootstrap;
  uint32_t seed = 12345;
  bool stemmer = false, split_summaries = false;

  RougeOptions rouge() const { return {stemmer, parse_rouge_tokenizer(tokenizer), split_summaries}; }
};

using Figures = std::vector<std::pair<std::string, RougeValue RougeScore::*>>;
const Figures& types() {
  static const Figures types = {{"rouge1", &RougeScore::rouge1},
                                {"rouge2", &RougeScore::rouge2},
                                {"rougeL", &RougeScore::rougeL},
                                {"rougeLsum", &RougeScore::rougeLsum}};
  return types;
}

// Puts real newlines in; true when any text has one.
bool mark_newlines(std::vector<std::string>& texts, const std::string& newline) {
  bool any = false;
  for (std::string& text : texts) {
    if (!newline.empty()) text = replace_all(std::move(text), newline, "\n");
    any = any || text.find('\n') != std::string::npos;
  }
  return any;
}

OrderedJson json_of(const RougeValue& value) {
  return {{"precision", value.precision}, {"recall", value.recall}, {"fmeasure", value.fmeasure}};
}

std::vector<std::string> row_of(const std::string& name, const RougeValue& value,
                                const std::optional<RougeInterval>& interval, RougeValue RougeScore::*type) {
  std::vector<std::string> row = {name, fixed(100 * value.precision, 2), fixed(100 * value.recall, 2),
                                  fixed(100 * value.fmeasure, 2)};
  if (interval)
    row.push_back(cat(fixed(100 * (interval->low.*type).fmeasure, 2), " - ",
                      fixed(100 * (interval->high.*type).fmeasure, 2)));
  return row;
}

// How the figures came about, in a line.
std::string rule_of(const Options& o, bool has_lines, size_t pairs) {
  const RougeOptions options = o.rouge();
  std::string rule =
      cat("rouge_score 0.1.2, ", o.stemmer ? "Porter stemmer" : "no stemmer", ", ", pairs, " pairs; ");
  if (options.tokenizer != RougeTokenizer::kDefault)
    rule += cat("tokenizer ", rouge_tokenizer_name(options.tokenizer), ", which is not the package's; ");
  if (o.split_summaries)
    return rule + "rougeLsum splits at newlines and at the ends of sentences (ICU's, not NLTK's)";
  return rule + (has_lines ? "newlines in the texts separate the sentences of rougeLsum"
                           : "no text holds a newline: rougeLsum equals rougeL");
}

OrderedJson figures_of(const Options& o, const RougeScore& mean,
                       const std::optional<RougeInterval>& interval) {
  OrderedJson figures;
  for (const auto& [name, type] : types()) figures[name] = json_of(mean.*type);
  if (!interval) return figures;
  OrderedJson& bootstrap =
      figures["bootstrap"] = {{"resamples", *o.bootstrap}, {"seed", o.seed}, {"confidence", 0.95}};
  for (const auto& [name, type] : types()) {
    bootstrap[name] = {{"low", json_of(interval->low.*type)},
                       {"mid", json_of(interval->mid.*type)},
                       {"high", json_of(interval->high.*type)}};
  }
  return figures;
}

std::string table_of(const RougeScore& mean, const std::optional<RougeInterval>& interval) {
  std::vector<std::vector<std::string>> rows = {{"x 100", "precision", "recall", "F"}};
  if (interval) rows.front().push_back("F, 95 % interval");
  for (const auto& [name, type] : types()) rows.push_back(row_of(name, mean.*type, interval, type));
  return aligned(rows);
}

void write_sentences(const std::string& file, const std::vector<RougeScore>& scores) {
  std::string lines;
  for (size_t i = 0; i < scores.size(); ++i) {
    OrderedJson object = {{"index", i}};
    for (const auto& [name, type] : types()) object[name] = json_of(scores[i].*type);
    lines += object.dump() + "\n";
  }
  write_result(file, lines);
}

// Share of the letters that count for nothing; warns when it is large.
double check_letters(const Options& o, const Texts& hypotheses, const Texts& references) {
  if (o.rouge().tokenizer != RougeTokenizer::kDefault) return 0;
  const double of_references = rouge_dropped_share(references.records),
               of_hypotheses = rouge_dropped_share(hypotheses.records);
  const bool worse = of_hypotheses > of_references;
  const double dropped = worse ? of_hypotheses : of_references;
  if (dropped > kMuchDropped) {
    log_warning(
        cat(worse ? hypotheses.file : references.file, ": ", percent(dropped),
            " of the letters are not a-z and count for nothing: ROUGE's tokenizer is made for English "
            "(--tokenizer unicode counts words of every script, and is no longer comparable)"));
  }
  return dropped;
}

void run_rouge(const Options& o) {
  refuse_overwriting(o.eval.output, {o.hypotheses, o.references});
  refuse_overwriting(o.sentences, {o.hypotheses, o.references, o.eval.output});
  RougeScorer scorer(o.rouge());
  Texts hypotheses = read_texts("hyp", o.hypotheses, o.eval);
  Texts references = read_texts("ref", o.references, o.eval);
  require_equal_counts(hypotheses, references);
  const bool lines_in_hypotheses = mark_newlines(hypotheses.records, o.newline);
  const bool has_lines = mark_newlines(references.records, o.newline) || lines_in_hypotheses;
  const double dropped = check_letters(o, hypotheses, references);
  warn_about_references(references);

  std::vector<RougeScore> scores;
  for (size_t i = 0; i < references.records.size(); ++i)
    scores.push_back(scorer.score(references.records[i], hypotheses.records[i]));
  const RougeScore mean = mean_rouge(scores);
  std::optional<RougeInterval> interval;
  if (o.bootstrap) interval = rouge_interval(scores, *o.bootstrap, o.seed);
  if (!o.sentences.empty()) write_sentences(o.sentences, scores);

  const std::string rule = rule_of(o, has_lines, scores.size());
  std::string table = table_of(mean, interval) + rule + "\n";
  if (dropped > kMuchDropped) table += percent(dropped) + " of the letters dropped\n";
  OrderedJson figures = figures_of(o, mean, interval);
  figures.update({{"pairs", scores.size()},
                  {"stemmer", o.stemmer},
                  {"tokenizer", rouge_tokenizer_name(o.rouge().tokenizer)},
                  {"newlines", has_lines},
                  {"split_summaries", o.split_summaries},
                  {"dropped_letters", dropped},
                  {"signature", rule}});
  print_figures(o.eval, "rouge", figures, {&hypotheses, &references}, table);
}

}  // namespace

EvalCommand add_rouge_command(Command& eval) {
  const auto options = std::make_shared<Options>();
  Command* command = eval.add_subcommand("rouge", "ROUGE-1, -2, -L and -Lsum, equal to rouge_score 0.1.2");
  command->add_option("--hyp", options->hypotheses, "Summaries, one a line, or JSONL")->required();
  command->add_option("--ref", options->references, "References, one for each summary")->required();
  command->add_flag("--stemmer", options->stemmer,
                    "Porter stemmer on words of more than three letters (the ELF paper on XSum)");
  command
      ->add_option("--tokenizer", options->tokenizer,
                   "default (a-z and 0-9 only, as the package) or unicode (words of every script)")
      ->capture_default_str();
  command->add_option(
      "--newline", options->newline,
      "What stands for a newline within a text, \"<n>\" say (JSONL has real ones); for rougeLsum");
  command->add_flag("--split-summaries", options->split_summaries,
                    "rougeLsum splits the texts into sentences itself (by ICU's rules)");
  command
      ->add_option("--bootstrap", options->bootstrap,
                   "95 % intervals over this many resamples (1000 is usual)")
      ->between(2, 1000000);
  command->add_option("--seed", options->seed, "Of the resamples")->capture_default_str();
  command->add_option("--sentences", options->sentences, "JSONL file to write: the scores of each pair");
  add_eval_options(*command, options->eval);
  with_examples(*command,
                "  elf-eval rouge --hyp summaries.jsonl --ref references.txt --stemmer\n"
                "  elf-eval rouge --hyp out.txt --ref ref.txt --newline '<n>' --bootstrap 1000 --json\n"
                "  elf-eval rouge --hyp out.hi --ref ref.hi --tokenizer unicode");
  return {command, [options] { run_rouge(*options); }};
}

}  // namespace elf::app
