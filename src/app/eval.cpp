// elf-eval: scores of texts. Each command lies in a file of its own, eval_NAME.cpp.
#include <vector>

#include "cli_core.h"
#include "elf/app/tools.h"
#include "eval_common.h"

namespace elf::app {

int eval(int argc, char** argv) {
  CLI::App app(
      "Scores of generated texts. Files hold one text a line, or are the JSONL that elf-sample writes.",
      "elf-eval");
  CoreOptions common;
  add_common_options(app, common);
  app.require_subcommand(1);
  const std::vector<EvalCommand> commands = {add_bleu_command(app), add_rouge_command(app),
                                             add_diversity_command(app), add_match_command(app),
                                             add_ngram_command(app)};
  with_examples(app,
                "  elf-eval bleu --hyp translations.txt --ref references.txt --lowercase --effective-order\n"
                "  elf-eval rouge --hyp summaries.jsonl --ref references.txt --stemmer --json\n"
                "  elf-eval diversity --input samples.jsonl --train train.txt\n"
                "  elf-eval match --hyp pronunciations.txt --ref references.txt\n"
                "  elf-eval ngram --train train.txt --input samples.jsonl\n"
                "  elf-eval bleu --help");
  return run_core(app, common, argc, argv, [&] {
    for (const EvalCommand& command : commands) {
      if (command.app->parsed()) command.run();
    }
  });
}

}  // namespace elf::app
