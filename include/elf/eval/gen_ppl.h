// Generative perplexity: how likely a published language model (GPT-2) finds generated texts,
//   exp(sum of -log p(token | tokens before it) / number of predicted tokens), over all texts together.
//
// kPublished, as the papers on diffusion language models compute it: blank texts are left out, texts are cut
// to max_tokens GPT-2 tokens and padded with <|endoftext|> to the longest of the whole set; predictions of
// every token but <|endoftext|> count, plus that of the first <|endoftext|>. Hence the longest text has no
// prediction of its end, and in a text that itself holds <|endoftext|> the tokens between the first and the
// second one count twice. What a text contributes depends on whether it is the longest; its log-likelihood
// does not. kClean: every text alone: its tokens, and one <|endoftext|> unless the text was cut. With bos its
// first token is predicted too, after an <|endoftext|>.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "elf/model/gpt2.h"
#include "elf/text/gpt2_tokenizer.h"

namespace elf {

enum class GenPplProtocol { kPublished, kClean };
GenPplProtocol parse_gen_ppl_protocol(const std::string& name);  // "published", "clean"; throws Error (usage)
std::string gen_ppl_protocol_name(GenPplProtocol protocol);

struct GenPplOptions {
  GenPplProtocol protocol = GenPplProtocol::kPublished;
  int64_t max_tokens = 1024;  // 2 to the scorer's positions; bos included
  bool bos = false;           // kClean only
  int64_t batch_size = 8;     // texts at a time; changes no figure
  std::function<void(int64_t done)> progress = {};
};

struct ScoredText {
  size_t index = 0;          // in the list of texts
  std::vector<int32_t> ids;  // GPT-2 tokens, cut
  bool cut = false;
  double nll = 0;      // in nats, over the counted predictions
  double tokens = 0;   // predictions counted
  double entropy = 0;  // -sum p ln(p + 1e-10), p: shares of the text's own tokens
};

struct GenPpl {
  std::vector<ScoredText> texts;  // those that are not blank
  int64_t samples = 0, blank = 0, cut = 0;
  double nll = 0, tokens = 0;

  double perplexity() const;    // NaN when no token was predicted
  double mean_entropy() const;  // over the texts that are not blank; 0 when there is none
};

// Texts in UTF-8. Throws Error (usage): max_tokens beyond the scorer's positions, a tokenizer with more
// tokens than the scorer, bos with the published protocol.
GenPpl gen_ppl(const Gpt2& scorer, const Gpt2Tokenizer& tokenizer, const std::vector<std::string>& texts,
               const GenPplOptions& options = {});

}  // namespace elf
