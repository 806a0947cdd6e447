#include "eval_scorer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "elf/base/error.h"
#include "elf/base/progress.h"

namespace elf::app {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kPublishedMaxTokens = 1024;

at::ScalarType parse_dtype(const std::string& name) {
  if (name == "float32") return at::kFloat;
  if (name == "bfloat16") return at::kBFloat16;
  usage_error("--dtype: found '", name, "', expected float32 or bfloat16");
}

// Where vocab.json and merges.txt are: in the scorer's folder; installed beside the tool; in the source tree.
fs::path tokenizer_folder(const fs::path& scorer) {
  std::error_code none;
  const fs::path tool = fs::read_symlink("/proc/self/exe", none).parent_path();
  const std::vector<fs::path> places = {scorer, tool.parent_path() / "share/elf/data/gpt2",
                                        ELF_SOURCE_DATA "/gpt2"};
  for (const fs::path& place : places) {
    if (fs::exists(place / Gpt2Tokenizer::kVocabularyFile)) return place;
  }
  usage_error(scorer.string(), ": holds no ", Gpt2Tokenizer::kVocabularyFile, ", nor does ",
              places[1].string(), "; copy GPT-2's vocab.json and merges.txt there");
}

const std::string& checked(const std::string& folder) {
  if (!fs::is_directory(folder))
    usage_error("--scorer ", folder, ": no such folder; expected a Hugging Face folder of a GPT-2");
  return folder;
}

}  // namespace

void add_scorer_options(Command& command, ScorerOptions& o) {
  command
      .add_option(
          "--protocol", o.protocol,
          "published (as the papers: ends counted but for the longest text) or clean (each text alone)")
      ->one_of({"published", "clean"})
      ->capture_default_str();
  command.add_option(
      "--max-tokens", o.max_tokens,
      "Longer texts are cut to so many GPT-2 tokens; without it 1024, or the scorer's positions");
  command.add_flag("--bos", o.bos,
                   "An <|endoftext|> before each text, so that its first token counts (clean only)");
  command.add_option("--scorer-batch", o.batch_size, "Texts at a time; changes no figure")
      ->positive()
      ->capture_default_str();
  command
      .add_option("--dtype", o.dtype, "Of the scorer's weights: float32, or bfloat16 as the published code")
      ->one_of({"float32", "bfloat16"})
      ->capture_default_str();
  command.add_option("--entropy-floor", o.bounds.entropy_floor, "DEGENERATE below this mean entropy (nats)")
      ->capture_default_str();
  command
      .add_option("--entropy-share", o.bounds.entropy_share,
                  "... or, for short texts, this share of ln(tokens)")
      ->capture_default_str();
  command.add_option("--rep4-limit", o.bounds.rep4, "DEGENERATE above this rep-4")->capture_default_str();
}

Gpt2Scorer::Gpt2Scorer(const ScorerOptions& options, at::Device device)
    : options_(options),
      model_(Gpt2::load(checked(options.folder), device, parse_dtype(options.dtype))),
      tokenizer_(Gpt2Tokenizer::load(tokenizer_folder(options.folder))) {
  gen_ppl_.protocol = parse_gen_ppl_protocol(options.protocol);
  gen_ppl_.max_tokens = options.max_tokens.value_or(std::min(kPublishedMaxTokens, model_.config().positions));
  gen_ppl_.bos = options.bos;
  gen_ppl_.batch_size = options.batch_size;
}

GenerationScores Gpt2Scorer::score(const std::vector<std::string>& texts,
                                   const std::optional<TokenLists>& own) const {
  Progress progress("scoring", static_cast<int64_t>(texts.size()), "texts");
  GenPplOptions gen_ppl_options = gen_ppl_;
  gen_ppl_options.progress = [&](int64_t done) { progress.update(done); };
  GenerationScores scores;
  scores.perplexity = gen_ppl(model_, tokenizer_, texts, gen_ppl_options);
  progress.finish();
  TokenLists tokens(texts.size());
  for (const ScoredText& text : scores.perplexity.texts) tokens[text.index] = text.ids;
  scores.gpt2 = diversity(tokens);
  if (own) scores.own = diversity(*own);
  scores.degenerate = degeneration(scores.gpt2, tokens, options_.bounds);
  return scores;
}

Mauve Gpt2Scorer::mauve_against(const std::vector<std::string>& texts,
                                const std::vector<std::string>& reference) const {
  const auto features = [&](const std::vector<std::string>& list) {
    return mauve_features(model_, tokenizer_, list, gen_ppl_.max_tokens, gen_ppl_.batch_size);
  };
  return mauve(features(reference), features(texts));
}

OrderedJson Gpt2Scorer::protocol() const {
  const Gpt2Config& c = model_.config();
  return {{"protocol", gen_ppl_protocol_name(gen_ppl_.protocol)},
          {"scorer",
           {{"path", options_.folder},
            {"hash", model_.digest()},
            {"dtype", options_.dtype},
            {"layers", c.layers},
            {"width", c.width},
            {"vocab_size", c.vocab_size}}},
          {"gpt2_tokenizer_hash", tokenizer_.hash()},
          {"max_tokens", gen_ppl_.max_tokens},
          {"truncation", "right"},
          {"bos", gen_ppl_.bos},
          {"precision", options_.dtype},
          {"device", model_.device().str()},
          {"degenerate_bounds",
           {{"entropy_floor", options_.bounds.entropy_floor},
            {"entropy_share", options_.bounds.entropy_share},
            {"rep4", options_.bounds.rep4}}}};
}

OrderedJson mauve_json(const Mauve& result, size_t reference_texts) {
  const MauveOptions options;
  return {{"score", result.score.mauve},
          {"star", result.score.mauve_star},
          {"frontier_integral", result.score.frontier_integral},
          {"clusters", result.clusters},
          {"components", result.components},
          {"scaling", options.scaling},
          {"variance", options.variance},
          {"starts", options.starts},
          {"seed", options.seed},
          {"reference_texts", reference_texts}};
}

OrderedJson diversity_json(const Diversity& figures) {
  return {{"entropy", figures.entropy},
          {"corpus_entropy", figures.corpus_entropy},
          {"distinct", figures.distinct},
          {"rep4", figures.rep4},
          {"mean_length", figures.mean_length}};
}

OrderedJson number_json(double value) {
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson(nullptr);
}

}  // namespace elf::app
