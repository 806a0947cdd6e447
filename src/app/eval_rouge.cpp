// elf-eval rouge
#include <memory>

#include "cli_core.h"
#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/metrics/rouge.h"
#include "elf/metrics/text_checks.h"
#include "elf/text/words.h"
#include "eval_common.h"

namespace elf::app {
namespace {

constexpr double kMuchDropped = 0.2;

struct Options {
  EvalOptions eval;
  std::string hypotheses, references, newline;
  bool stemmer = false;
};

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

std::vector<std::string> row_of(const std::string& name, const RougeValue& value) {
  return {name, fixed(100 * value.precision, 2), fixed(100 * value.recall, 2),
          fixed(100 * value.fmeasure, 2)};
}

void run_rouge(const Options& options) {
  Texts hypotheses = read_texts("hyp", options.hypotheses, options.eval);
  Texts references = read_texts("ref", options.references, options.eval);
  require_equal_counts(hypotheses, references);
  const bool lines_in_hypotheses = mark_newlines(hypotheses.records, options.newline);
  const bool has_lines = mark_newlines(references.records, options.newline) || lines_in_hypotheses;
  const double dropped = rouge_dropped_share(references.records);
  if (dropped > kMuchDropped) {
    log_warning(
        cat(references.file, ": ", percent(dropped),
            " of the letters are not a-z and count for nothing: ROUGE's tokenizer is made for English"));
  }
  RougeOptions rouge_options;
  rouge_options.stemmer = options.stemmer;
  std::vector<RougeScore> scores;
  for (size_t i = 0; i < references.records.size(); ++i) {
    scores.push_back(rouge(references.records[i], hypotheses.records[i], rouge_options));
  }
  const RougeScore mean = mean_rouge(scores);
  const std::string newline_rule = has_lines ? "newlines in the texts separate the sentences of rougeLsum"
                                             : "no text holds a newline: rougeLsum equals rougeL";
  const std::string rule = cat("rouge_score 0.1.2, ", options.stemmer ? "Porter stemmer" : "no stemmer", ", ",
                               scores.size(), " pairs; ", newline_rule);
  std::string table = aligned({{"x 100", "precision", "recall", "F"},
                               row_of("rouge1", mean.rouge1),
                               row_of("rouge2", mean.rouge2),
                               row_of("rougeL", mean.rougeL),
                               row_of("rougeLsum", mean.rougeLsum)}) +
                      rule + "\n";
  if (dropped > kMuchDropped) table += percent(dropped) + " of the references' letters dropped\n";
  print_figures(options.eval,
                {{"rouge1", json_of(mean.rouge1)},
                 {"rouge2", json_of(mean.rouge2)},
                 {"rougeL", json_of(mean.rougeL)},
                 {"rougeLsum", json_of(mean.rougeLsum)},
                 {"pairs", scores.size()},
                 {"stemmer", options.stemmer},
                 {"newlines", has_lines},
                 {"dropped_letters", dropped},
                 {"signature", rule}},
                {&hypotheses, &references}, table);
}

}  // namespace

EvalCommand add_rouge_command(CLI::App& eval) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = eval.add_subcommand("rouge", "ROUGE-1, -2, -L and -Lsum, equal to rouge_score 0.1.2");
  command->add_option("--hyp", options->hypotheses, "Summaries, one a line, or JSONL")->required();
  command->add_option("--ref", options->references, "References, one for each summary")->required();
  command->add_flag("--stemmer", options->stemmer,
                    "Porter stemmer on words of more than three letters (the ELF paper on XSum)");
  command->add_option(
      "--newline", options->newline,
      "What stands for a newline within a text, \"<n>\" say (JSONL has real ones); for rougeLsum");
  add_eval_options(*command, options->eval);
  with_examples(*command,
                "  elf-eval rouge --hyp summaries.jsonl --ref references.txt --stemmer\n"
                "  elf-eval rouge --hyp out.txt --ref ref.txt --newline '<n>' --json");
  return {command, [options] { run_rouge(*options); }};
}

}  // namespace elf::app
