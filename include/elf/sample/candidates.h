// One text out of several candidates for the same input: the one that agrees best with the others (minimum
// Bayes risk: Kumar and Byrne, 2004; Eikema and Aziz, 2020).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace elf {

enum class CandidateMeasure {
  kBleu,   // sentence BLEU, tokenizer 13a, effective order, smoothing exp; case counts
  kRouge,  // F-measure of rougeL, unstemmed
};

// "bleu", "rouge"; throws Error (usage) naming `option` for anything else.
CandidateMeasure parse_candidate_measure(std::string_view name, std::string_view option);

struct CandidateChoice {
  size_t chosen = 0;              // of equally good ones the first
  std::vector<double> utilities;  // of each candidate: mean over the others of its score against them, 0 to 1
};

// The candidate of the highest utility, the others standing for the references. Equal texts score 1, empty
// ones included. One candidate: utility 1. Throws Error (usage) for none.
CandidateChoice choose_candidate(const std::vector<std::string>& candidates, CandidateMeasure measure);

}  // namespace elf
