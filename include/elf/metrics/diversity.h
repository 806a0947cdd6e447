// How varied a set of generated texts is, and how much of it is copied. All figures are over tokens: ids of
// any tokenizer, or the words between white space. N-grams never reach over the end of a text. A text without
// tokens is blank: counted, and left out of every mean.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace elf {

struct Diversity {
  // Mean over the texts of -sum_w p(w) ln p(w), p being the shares of the text's own tokens: what is
  // published as unigram entropy. For a text of n tokens at most ln n.
  double entropy = 0;
  // The same of all texts' tokens together: the one to read when texts are short.
  double corpus_entropy = 0;
  // distinct[n-1], n = 1..4: different n-grams over all n-grams, of all texts together. Falls as the set
  // grows: compare equal sizes.
  std::array<double, 4> distinct = {};
  // Mean over the texts with four tokens or more of 1 - different 4-grams / 4-grams: how much a text repeats
  // itself.
  double rep4 = 0;
  double mean_length = 0;  // tokens of a text
  int64_t samples = 0;     // texts, blank ones included
  int64_t blank = 0;
};

Diversity diversity(const std::vector<std::vector<int32_t>>& texts);
Diversity diversity(const std::vector<std::string>& texts);  // words between white space

struct Novelty {
  double new_trigrams =
      0;  // share of the texts' trigrams (counted as often as they occur) that no training text holds
  double exact_copies = 0;  // share of the texts whose words are those of one whole training text
};

// Words between white space; blank texts left out. Zeros where there is nothing to count.
Novelty novelty(const std::vector<std::string>& texts, const std::vector<std::string>& training_texts);

}  // namespace elf
