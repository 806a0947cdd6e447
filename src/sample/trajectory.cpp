#include "elf/sample/trajectory.h"

#include <algorithm>
#include <cmath>

namespace elf {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kWordStart = "\u2581";

double rounded(double value) {
  return std::round(value * 1e4) / 1e4;
}

// A piece as it stands in the text; special tokens by name.
std::string shown(int64_t id, const SentencePieceTokenizer& tokenizer) {
  std::string piece = tokenizer.piece(id);
  for (size_t at; (at = piece.find(kWordStart)) != std::string::npos;)
    piece.replace(at, kWordStart.size(), " ");
  return piece;
}

}  // namespace

StepView step_view(const GeneratorStep& step, size_t row, int64_t sample,
                   const SentencePieceTokenizer& tokenizer, const DecodeOptions& options) {
  StepView view{sample, step.index + 1, step.t, tokenizer.decode(step.ids[row], options), 0, 0, {}};
  const std::vector<float>& confidence = step.confidence[row];
  for (size_t i = 0; i < confidence.size(); ++i) {
    const bool end = i >= step.ids[row].size();
    view.tokens.push_back(
        {end ? "" : shown(step.ids[row][i], tokenizer), confidence[i], step.entropy[row][i]});
    view.confidence += confidence[i];
    view.entropy += step.entropy[row][i];
  }
  const auto count = static_cast<double>(std::max<size_t>(1, confidence.size()));
  view.confidence /= count;
  view.entropy /= count;
  return view;
}

Json step_json(const StepView& view) {
  Json tokens = Json::array();
  for (const TokenView& token : view.tokens) {
    tokens.push_back({{"text", token.text},
                      {"confidence", rounded(token.confidence)},
                      {"entropy", rounded(token.entropy)}});
  }
  return {{"index", view.sample},
          {"step", view.step},
          {"t", view.t},
          {"text", view.text},
          {"confidence", view.confidence},
          {"entropy", view.entropy},
          {"tokens", std::move(tokens)}};
}

}  // namespace elf
