#include "eval_figures.h"

#include <algorithm>
#include <cmath>

namespace elf::app {
namespace {

constexpr FigureStyle kStyles[] = {{"bleu", "BLEU", 2, 1},
                                   {"bleu_lower_cased", "BLEU lc", 2, 1},
                                   {"bleu_published", "BLEU lc, eff", 2, 1},
                                   {"chrf", "chrF2", 2, 1},
                                   {"chrf++", "chrF2++", 2, 1},
                                   {"ter", "TER", 2, 1},
                                   {"rouge1", "R-1", 2, 1},
                                   {"rouge2", "R-2", 2, 1},
                                   {"rougeL", "R-L", 2, 1},
                                   {"rougeLsum", "R-Lsum", 2, 1},
                                   {"exact", "exact %", 1, 100},
                                   {"exact_match", "exact %", 1, 100},
                                   {"cer", "CER %", 1, 100},
                                   {"character_error_rate", "CER %", 1, 100},
                                   {"ppl", "Gen. PPL", 2, 1},
                                   {"perplexity", "n-gram PPL", 2, 1},
                                   {"entropy", "entropy", 2, 1},
                                   {"corpus_entropy", "entropy of all words", 2, 1},
                                   {"own_entropy", "entropy, own tokens", 2, 1},
                                   {"distinct1", "distinct-1", 3, 1},
                                   {"distinct2", "distinct-2", 3, 1},
                                   {"distinct3", "distinct-3", 3, 1},
                                   {"distinct4", "distinct-4", 3, 1},
                                   {"rep4", "rep-4 %", 1, 100},
                                   {"own_rep4", "rep-4 %, own tokens", 1, 100},
                                   {"mean_length", "length", 1, 1},
                                   {"own_mean_length", "length, own tokens", 1, 1},
                                   {"blank", "blank", 1, 1},
                                   {"exact_copies", "copies %", 1, 100},
                                   {"new_trigrams", "new trigrams %", 1, 100},
                                   {"mauve", "MAUVE", 4, 1}};

const FigureStyle* known(const std::string& figure) {
  const auto* found = std::ranges::find(kStyles, figure, &FigureStyle::figure);
  return found == std::end(kStyles) ? nullptr : found;
}

}  // namespace

std::span<const FigureStyle> figure_styles() {
  return kStyles;
}

std::string figure_title(const std::string& figure) {
  const FigureStyle* style = known(figure);
  return style == nullptr ? figure : style->title;
}

double figure_factor(const std::string& figure) {
  const FigureStyle* style = known(figure);
  return style == nullptr ? 1 : style->factor;
}

std::string figure_text(const std::string& figure, const RecordFigure& value) {
  if (std::isnan(value.mean)) return "-";
  const FigureStyle* style = known(figure);
  const int digits = style == nullptr ? 3 : style->digits;
  const double factor = figure_factor(figure);
  std::string text = fixed(factor * value.mean, digits);
  if (value.standard_error) text += " ± " + fixed(factor * *value.standard_error, digits);
  return text;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double standard_error(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (count - 1) / count);
}

}  // namespace elf::app
