// elf-eval diversity and elf-eval ngram: figures of texts that have no reference.
#include <memory>
#include <optional>

#include "cli_core.h"
#include "elf/base/outputs.h"
#include "elf/metrics/diversity.h"
#include "elf/metrics/ngram_lm.h"
#include "eval_common.h"

namespace elf::app {
namespace {

struct DiversityOptions {
  EvalOptions eval;
  std::string input, train;
};

void run_diversity(const DiversityOptions& options) {
  refuse_overwriting(options.eval.output, {options.input, options.train});
  const Texts texts = read_texts("input", options.input, options.eval);
  const Diversity result = diversity(texts.records);
  OrderedJson figures = {{"entropy", result.entropy},
                         {"corpus_entropy", result.corpus_entropy},
                         {"distinct", result.distinct},
                         {"rep4", result.rep4},
                         {"mean_length", result.mean_length},
                         {"samples", result.samples},
                         {"blank", result.blank},
                         {"tokens", "words"}};
  std::vector<std::vector<std::string>> rows = {
      {"entropy of a text (nats)", fixed(result.entropy, 3)},
      {"entropy of all words (nats)", fixed(result.corpus_entropy, 3)}};
  for (int n = 1; n <= 4; ++n)
    rows.push_back({"distinct-" + std::to_string(n), fixed(result.distinct[n - 1], 3)});
  rows.insert(rows.end(), {{"rep-4", percent(result.rep4)},
                           {"mean length (words)", fixed(result.mean_length, 1)},
                           {"samples", std::to_string(result.samples)},
                           {"blank", std::to_string(result.blank)}});
  std::vector<const Texts*> inputs = {&texts};
  std::optional<Texts> train;
  if (!options.train.empty()) {
    train = read_texts("train", options.train, options.eval);
    inputs.push_back(&*train);
    const Novelty found = novelty(texts.records, train->records);
    figures["new_trigrams"] = found.new_trigrams;
    figures["exact_copies"] = found.exact_copies;
    rows.push_back({"new trigrams", percent(found.new_trigrams)});
    rows.push_back({"exact copies", percent(found.exact_copies)});
  }
  print_figures(options.eval, "diversity", figures, inputs, aligned(rows));
}

struct NgramOptions {
  EvalOptions eval;
  std::string input, train;
  int order = 3;
};

void run_ngram(const NgramOptions& options) {
  refuse_overwriting(options.eval.output, {options.input, options.train});
  const Texts train = read_texts("train", options.train, options.eval);
  const Texts texts = read_texts("input", options.input, options.eval);
  const Perplexity result = perplexity(NgramModel(train.records, options.order), texts.records);
  print_figures(options.eval, "ngram",
                {{"perplexity", result.perplexity},
                 {"order", options.order},
                 {"tokens", result.tokens},
                 {"oov_rate", result.oov_rate},
                 {"texts", result.texts},
                 {"blank", result.blank}},
                {&texts, &train},
                aligned({{"perplexity of a word", fixed(result.perplexity, 2)},
                         {"order", std::to_string(options.order)},
                         {"unknown words", percent(result.oov_rate)},
                         {"tokens (words and ends)", std::to_string(result.tokens)},
                         {"texts", std::to_string(result.texts)},
                         {"blank, skipped", std::to_string(result.blank)}}));
}

}  // namespace

EvalCommand add_diversity_command(Command& eval) {
  const auto options = std::make_shared<DiversityOptions>();
  Command* command =
      eval.add_subcommand("diversity", "Entropy, distinct-n, rep-4 and length of texts, in words");
  command->add_option("--input", options->input, "Texts, one a line, or JSONL")->required();
  command->add_option("--train", options->train,
                      "Training text: adds the shares of new trigrams and of exact copies");
  add_eval_options(*command, options->eval);
  with_examples(*command, "  elf-eval diversity --input samples.jsonl --train train.txt --json");
  return {command, [options] { run_diversity(*options); }};
}

EvalCommand add_ngram_command(Command& eval) {
  const auto options = std::make_shared<NgramOptions>();
  Command* command = eval.add_subcommand(
      "ngram", "Perplexity of texts under a Kneser-Ney n-gram model of a training text, in words");
  command->add_option("--train", options->train, "Text that the model is made of, one a line, or JSONL")
      ->required();
  command->add_option("--input", options->input, "Texts to score")->required();
  command->add_option("--order", options->order, "Words of an n-gram")->between(1, 6)->capture_default_str();
  add_eval_options(*command, options->eval);
  with_examples(*command, "  elf-eval ngram --train train.txt --input samples.jsonl --order 3");
  return {command, [options] { run_ngram(*options); }};
}

}  // namespace elf::app
