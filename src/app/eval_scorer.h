// GPT-2 as elf-eval uses it: options, the scorer, and everything that stands beside a Gen. PPL.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command_line.h"
#include "elf/eval/gen_ppl.h"
#include "elf/metrics/degeneration.h"
#include "eval/mauve.h"
#include "eval_common.h"

namespace elf::app {

struct ScorerOptions {
  std::string folder, protocol = "published", dtype = "float32";
  std::optional<int64_t> max_tokens;  // none: 1024, or the scorer's positions where those are fewer
  int64_t batch_size = 8;
  bool bos = false;
  DegenerationBounds bounds;
};
// All but --scorer itself, which is required in one command and optional in another.
void add_scorer_options(Command& command, ScorerOptions& options);

using TokenLists = std::vector<std::vector<int32_t>>;

// What is known of a set of generated texts.
struct GenerationScores {
  GenPpl perplexity;
  Diversity gpt2;                       // over GPT-2's tokens
  std::optional<Diversity> own;         // over the model's own tokens
  std::vector<std::string> degenerate;  // reasons
};

class Gpt2Scorer {
 public:
  // vocab.json and merges.txt from the scorer's folder, else those of the project. Throws Error (usage).
  Gpt2Scorer(const ScorerOptions& options, at::Device device);

  // own: the model's own tokens of each text, or none.
  GenerationScores score(const std::vector<std::string>& texts, const std::optional<TokenLists>& own) const;

  // Of the texts against those that they should be like. Throws Error (usage): too few; built without faiss.
  Mauve mauve_against(const std::vector<std::string>& texts, const std::vector<std::string>& reference) const;

  // Everything that the figures depend on beside the texts.
  OrderedJson protocol() const;

  const Gpt2& model() const { return model_; }
  const Gpt2Tokenizer& tokenizer() const { return tokenizer_; }

 private:
  ScorerOptions options_;
  Gpt2 model_;
  Gpt2Tokenizer tokenizer_;
  GenPplOptions gen_ppl_;
};

OrderedJson mauve_json(const Mauve& result, size_t reference_texts);
OrderedJson diversity_json(const Diversity& figures);

// A number, or null where JSON has none (NaN, infinite).
OrderedJson number_json(double value);

}  // namespace elf::app
