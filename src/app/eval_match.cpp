// elf-eval match
#include <memory>

#include "cli_core.h"
#include "elf/base/outputs.h"
#include "elf/metrics/edit_distance.h"
#include "eval_common.h"
#include "eval_guards.h"

namespace elf::app {
namespace {

struct Options {
  EvalOptions eval;
  std::string hypotheses, references;
};

void run_match(const Options& options) {
  refuse_overwriting(options.eval.output, {options.hypotheses, options.references});
  const Texts hypotheses = read_texts("hyp", options.hypotheses, options.eval);
  const Texts references = read_texts("ref", options.references, options.eval);
  require_equal_counts(hypotheses, references);
  for (const Texts* texts : {&hypotheses, &references})
    warn_about_trailing_space(*texts, "exact match and the error rate count it");
  const MatchScore score = match(hypotheses.records, references.records);
  print_figures(options.eval, "match",
                {{"exact", score.exact},
                 {"cer", score.cer},
                 {"pairs", score.pairs},
                 {"edits", score.edits},
                 {"reference_length", score.reference_length}},
                {&hypotheses, &references},
                aligned({{"exact match", percent(score.exact)},
                         {"character error rate", percent(score.cer)},
                         {"pairs", std::to_string(score.pairs)}}));
}

}  // namespace

EvalCommand add_match_command(Command& eval) {
  const auto options = std::make_shared<Options>();
  Command* command = eval.add_subcommand(
      "match", "Share of exact matches and character error rate (edits over code points of the references)");
  command->add_option("--hyp", options->hypotheses, "Predictions, one a line, or JSONL")->required();
  command->add_option("--ref", options->references, "Right answers, one for each prediction")->required();
  add_eval_options(*command, options->eval);
  with_examples(*command, "  elf-eval match --hyp pronunciations.jsonl --ref references.txt");
  return {command, [options] { run_match(*options); }};
}

}  // namespace elf::app
