// elf-eval: scores of texts. Each command lies in a file of its own, eval_NAME.cpp.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "cli_core.h"
#include "elf/app/tools.h"
#include "elf/base/error.h"
#include "elf/base/log.h"
#include "eval_common.h"

namespace elf::app {
namespace {

// Loading LibTorch takes longer than most scores. So the commands that work with networks are a program of
// their own, elf-eval-model beside this one, which takes this one's place when such a command is given.
constexpr std::string_view kModelCommands[] = {"genppl", "run"};

// The first argument that is no option and no common option's value.
std::string_view command_of(int argc, char** argv) {
  constexpr std::string_view kWithValue[] = {"--log-level", "--device", "--threads"};
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with('-')) return argument;
    i += std::ranges::find(kWithValue, argument) != std::end(kWithValue);
  }
  return "";
}

// Returns only when that fails.
int become_model_tool(char** argv) {
  std::error_code none;
  const std::filesystem::path tool =
      std::filesystem::read_symlink("/proc/self/exe", none).replace_filename("elf-eval-model");
  ::execv(tool.c_str(), argv);
  log_error(cat(tool.string(), ": cannot be started (", std::strerror(errno),
                "); it belongs beside elf-eval. Build or install the project again"));
  return 1;
}

}  // namespace

int eval(int argc, char** argv) {
  const std::string_view command = command_of(argc, argv);
  if (std::ranges::find(kModelCommands, command) != std::end(kModelCommands)) return become_model_tool(argv);
  Command app(
      "Scores of generated texts. Files hold one text a line, or are the JSONL that elf-sample writes.",
      "elf-eval");
  CoreOptions common;
  add_common_options(app, common);
  app.require_subcommand(1);
  const std::vector<EvalCommand> commands = {
      add_bleu_command(app),  add_rouge_command(app), add_diversity_command(app), add_match_command(app),
      add_ngram_command(app), add_table_command(app), add_frontier_command(app)};
  app.add_subcommand("genppl", "Perplexity of generated texts under a GPT-2, with their entropy beside it");
  app.add_subcommand("run", "Samples from a model and scores the samples, for a list of settings and seeds");
  with_examples(
      app,
      "  elf-eval bleu --hyp translations.txt --ref references.txt --lowercase --effective-order\n"
      "  elf-eval rouge --hyp summaries.jsonl --ref references.txt --stemmer --json\n"
      "  elf-eval diversity --input samples.jsonl --train train.txt\n"
      "  elf-eval match --hyp pronunciations.txt --ref references.txt\n"
      "  elf-eval ngram --train train.txt --input samples.jsonl\n"
      "  elf-eval genppl --input samples.jsonl --scorer models/gpt2-large\n"
      "  elf-eval run --model runs/verses --num-samples 1000 --scorer models/gpt2-large --out scores\n"
      "  elf-eval table scores/*.json\n"
      "  elf-eval bleu --help");
  return run_core(app, common, argc, argv, [&] {
    for (const auto& [command, run] : commands) {
      if (command->parsed()) run();
    }
  });
}

}  // namespace elf::app
