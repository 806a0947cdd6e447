// ROUGE as the package rouge_score 0.1.2 computes it (Lin 2004), figures from 0 to 1.
//
// rouge1, rouge2: clipped overlap of word n-grams. rougeL: longest common subsequence (LCS) of the whole
// texts, newlines being blanks. rougeLsum: texts are split at newlines; for each line of the target the union
// of its LCS with every line of the prediction, each word counted at most as often as it occurs in either
// text. precision = hits / words of the prediction, recall = hits / words of the target. Without a newline in
// either text rougeLsum equals rougeL.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace elf {

struct RougeValue {
  double precision = 0, recall = 0, fmeasure = 0;  // fmeasure: harmonic mean, 0 when both are
};

struct RougeScore {
  RougeValue rouge1, rouge2, rougeL, rougeLsum;
};

struct RougeOptions {
  bool stemmer = false;  // Porter's, on words of more than three letters; the published ELF code: true
};

// Lower-cased runs of a-z and 0-9; every other character separates. Other scripts therefore have no tokens at
// all.
std::vector<std::string> rouge_tokens(std::string_view text, const RougeOptions& options = {});

RougeScore rouge(std::string_view target, std::string_view prediction, const RougeOptions& options = {});

// Mean of every figure; zeros for no score at all.
RougeScore mean_rouge(const std::vector<RougeScore>& scores);

}  // namespace elf
