// How a text comes out of noise, step by step: for files, for the page, for the terminal.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "elf/sample/generate.h"
#include "elf/text/sentencepiece_tokenizer.h"

namespace elf {

struct TokenView {
  std::string text;  // as it stands in the text, with the blank before a word; "" for the end of the text
  double confidence = 0;  // probability of this token, in (0, 1]
  double entropy = 0;     // of the distribution it was chosen from, in nats
};

// One sample at one step.
struct StepView {
  int64_t sample = 0;  // its index
  int64_t step = 0;    // from 1
  double t = 0;        // time reached
  std::string text;
  double confidence = 0, entropy = 0;  // means over the tokens, the end included
  std::vector<TokenView> tokens;       // the last one is the end, where there is one
};

// Row `row` of a step, being sample `sample`.
StepView step_view(const GeneratorStep& step, size_t row, int64_t sample,
                   const SentencePieceTokenizer& tokenizer, const DecodeOptions& options);

// {"index", "step", "t", "text", "confidence", "entropy", "tokens": [{"text", "confidence", "entropy"}]};
// figures of the tokens are rounded to four digits.
nlohmann::ordered_json step_json(const StepView& view);

// One HTML page without anything outside it: choose a sample, move a slider over the steps, see the tokens
// fade in by confidence, with curves of both figures. `steps`: objects of step_json, any order of samples,
// steps of a sample in order. `caption`: what made them.
std::string trajectory_page(const std::vector<nlohmann::ordered_json>& steps, const std::string& caption);

}  // namespace elf
