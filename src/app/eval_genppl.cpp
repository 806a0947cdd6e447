// elf-eval genppl
#include <cmath>
#include <memory>

#include "elf/base/error.h"
#include "elf/base/json.h"
#include "elf/base/log.h"
#include "elf/base/outputs.h"
#include "elf/text/records.h"
#include "eval_guards.h"
#include "eval_model.h"
#include "eval_scorer.h"

namespace elf::app {
namespace {

struct Options {
  EvalOptions eval;
  ScorerOptions scorer;
  std::string input, train, reference, texts;
};

// The model's own tokens, where every record of the file is JSONL with "ids".
std::optional<TokenLists> read_own_tokens(const std::string& file, size_t records) {
  if (file == "-") return std::nullopt;
  RecordSource source;
  source.files = {file};
  source.format = RecordFormat::kLines;
  RecordReader reader(source);
  TokenLists lists;
  for (Record record; reader.next(record);) {
    if (record.columns.front().empty()) continue;
    const auto object = parse_json(record.columns.front());
    if (!object.is_object() || !object.contains("ids") || !object["ids"].is_array()) return std::nullopt;
    std::vector<int32_t>& ids = lists.emplace_back();
    for (const auto& id : object["ids"]) {
      if (!id.is_number_integer()) return std::nullopt;
      ids.push_back(id.get<int32_t>());
    }
  }
  return lists.size() == records ? std::make_optional(std::move(lists)) : std::nullopt;
}

// What other texts add.
struct Beside {
  std::optional<Novelty> novel;
  OrderedJson mauve = nullptr;
};

OrderedJson figures_of(const GenerationScores& scores, const OrderedJson& protocol, const Beside& beside) {
  const std::optional<Novelty>& novel = beside.novel;
  const GenPpl& ppl = scores.perplexity;
  OrderedJson figures = {
      {"ppl", number_json(ppl.perplexity())},
      {"entropy", ppl.mean_entropy()},
      {"nll", ppl.nll},
      {"tokens", ppl.tokens},
      {"samples", ppl.samples},
      {"scored", ppl.texts.size()},
      {"skipped_blank", ppl.blank},
      {"cut", ppl.cut},
      {"mean_length", scores.gpt2.mean_length},
      {"distinct", scores.gpt2.distinct},
      {"rep4", scores.gpt2.rep4},
      {"corpus_entropy", scores.gpt2.corpus_entropy},
      {"entropy_model_tokens", scores.own ? OrderedJson(scores.own->entropy) : OrderedJson(nullptr)},
      {"own_tokens", scores.own ? diversity_json(*scores.own) : OrderedJson(nullptr)},
      {"exact_copies", novel ? OrderedJson(novel->exact_copies) : OrderedJson(nullptr)},
      {"new_trigrams", novel ? OrderedJson(novel->new_trigrams) : OrderedJson(nullptr)},
      {"mauve", beside.mauve},
      {"degenerate", !scores.degenerate.empty()},
      {"degenerate_reasons", scores.degenerate}};
  figures.update(protocol);
  return figures;
}

// One line: a Gen. PPL is never seen without what shows whether it is worth anything.
std::string line_of(const GenerationScores& scores, const OrderedJson& protocol, const Beside& beside) {
  const GenPpl& ppl = scores.perplexity;
  const double value = ppl.perplexity();
  std::string line = cat("Gen. PPL ", std::isnan(value) ? "undefined (no token predicted)" : fixed(value, 2),
                         "  entropy ", fixed(ppl.mean_entropy(), 3));
  if (scores.own) line += cat(" (own tokens ", fixed(scores.own->entropy, 3), ")");
  line += "  distinct-1..4";
  for (const double share : scores.gpt2.distinct) line += " " + fixed(share, 3);
  line += cat("  rep-4 ", percent(scores.gpt2.rep4));
  if (beside.novel) line += cat("  exact copies ", percent(beside.novel->exact_copies));
  if (beside.mauve.is_object()) line += cat("  MAUVE ", fixed(beside.mauve["score"].get<double>(), 4));
  line +=
      cat("  mean length ", fixed(scores.gpt2.mean_length, 1), "  blank ", ppl.blank, " of ", ppl.samples);
  if (!scores.degenerate.empty()) {
    line += "  DEGENERATE:";
    for (const std::string& reason : scores.degenerate)
      line += (&reason == &scores.degenerate.front() ? " " : ", ") + reason;
  }
  return cat(
      line, "\nprotocol ", protocol["protocol"].get<std::string>(), ", scorer ",
      protocol["scorer"]["path"].get<std::string>(), " (", protocol["scorer"]["dtype"].get<std::string>(),
      ", ", protocol["scorer"]["hash"].get<std::string>(), "), at most ", protocol["max_tokens"].dump(),
      " tokens (", ppl.cut, " texts cut), ", protocol["bos"].get<bool>() ? "with" : "without", " BOS\n");
}

void write_texts(const std::string& file, const GenPpl& ppl) {
  std::string lines;
  for (const ScoredText& text : ppl.texts) {
    lines += OrderedJson({{"index", text.index},
                          {"nll", text.nll},
                          {"tokens", text.tokens},
                          {"entropy", text.entropy},
                          {"length", text.ids.size()},
                          {"cut", text.cut}})
                 .dump() +
             "\n";
  }
  write_result(file, lines);
}

void run_genppl(const Options& o, const CommonOptions& common) {
  refuse_overwriting(o.eval.output, {o.input, o.train, o.reference});
  refuse_overwriting(o.texts, {o.input, o.train, o.reference, o.eval.output});
  const Texts texts = read_texts("input", o.input, o.eval);
  std::vector<const Texts*> inputs = {&texts};
  std::optional<Texts> train, reference;
  Beside beside;
  if (!o.train.empty()) {
    train = read_texts("train", o.train, o.eval);
    inputs.push_back(&*train);
    beside.novel = novelty(texts.records, train->records);
  }
  if (!o.reference.empty()) {
    reference = read_texts("reference", o.reference, o.eval);
    inputs.push_back(&*reference);
  }
  warn_about_trailing_space(texts, "its tokens count towards Gen. PPL");
  const Gpt2Scorer scorer(o.scorer, common.device());
  const GenerationScores scores = scorer.score(texts.records, read_own_tokens(o.input, texts.records.size()));
  if (reference)
    beside.mauve =
        mauve_json(scorer.mauve_against(texts.records, reference->records), reference->records.size());
  if (!o.texts.empty()) write_texts(o.texts, scores.perplexity);
  if (2 * scores.perplexity.blank > scores.perplexity.samples)
    log_warning(cat(o.input, ": ", scores.perplexity.blank, " of ", scores.perplexity.samples,
                    " texts are blank; the figures are those of the rest"));
  print_figures(o.eval, "genppl", figures_of(scores, scorer.protocol(), beside), inputs,
                line_of(scores, scorer.protocol(), beside));
}

}  // namespace

EvalCommand add_genppl_command(Command& eval, const CommonOptions& common) {
  const auto options = std::make_shared<Options>();
  Command* command = eval.add_subcommand(
      "genppl", "Perplexity of generated texts under a GPT-2, with their entropy beside it");
  command->add_option("--input", options->input, "Generated texts, one a line, or the JSONL of elf-sample")
      ->required();
  command->add_option("--scorer", options->scorer.folder, "Hugging Face folder of a GPT-2")->required();
  command->add_option("--train", options->train, "Training text: adds the share of exact copies");
  command->add_option("--reference", options->reference,
                      "Texts as they should be, one a line or JSONL: adds MAUVE");
  command->add_option("--texts", options->texts, "JSONL file to write: the figures of each text");
  add_scorer_options(*command, options->scorer);
  add_eval_options(*command, options->eval);
  with_examples(
      *command,
      "  elf-eval genppl --input samples.jsonl --scorer models/gpt2-large\n"
      "  elf-eval genppl --input samples.jsonl --scorer models/gpt2-large --protocol clean --train train.txt "
      "--json\n"
      "  elf-eval genppl --input samples.txt --scorer models/gpt2-large --dtype bfloat16 --device cuda");
  return {command, [options, &common] { run_genppl(*options, common); }};
}

}  // namespace elf::app
