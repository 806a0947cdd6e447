// An n-gram language model with interpolated modified Kneser-Ney smoothing (Chen and Goodman 1999): how
// likely is a text, measured by the texts that a small model was trained on.
//
//   p(w | h) = max(c(h w) - D(c(h w)), 0) / c(h .) + (D1 n1(h) + D2 n2(h) + D3 n3+(h)) / c(h .) p(w | h')
//
// h' is h without its first word. c counts occurrences at the highest order and for n-grams at the start of a
// text, else the number of different words in front (continuation counts). n_k(h): words seen k times after
// h. The discounts of each order come from its counts of counts. Below the unigrams lies the uniform
// distribution over the vocabulary: the training words, the end of text and one unknown word; so the
// probabilities of the vocabulary sum to one after every history, and a text is tokens plus one end of text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace elf {

class NgramModel {
 public:
  using Word = uint32_t;
  static constexpr Word kBegin = 0, kEnd = 1, kUnknown = 2;  // kBegin is a history only, never predicted

  // Words are what white space separates; blank texts are skipped. 1 <= order <= 6.
  // Throws Error (usage): order out of range, no text with a word.
  explicit NgramModel(const std::vector<std::string>& texts, int order = 3);

  int order() const { return order_; }
  // Everything that can be predicted: kEnd, kUnknown and the training words kUnknown + 1 ... kUnknown +
  // vocabulary_size() - 2.
  int64_t vocabulary_size() const { return static_cast<int64_t>(words_.size()) + 2; }
  Word word(std::string_view text) const;  // kUnknown for a word of no training text

  // Of the history only the last order - 1 words matter; it starts with kBegin when it starts the text. The
  // result lies in (0, 1).
  double probability(const std::vector<Word>& history, Word next) const;

 private:
  // One n-gram that occurs in training, reached from its first n - 1 words.
  struct Node {
    uint32_t parent = 0, suffix = 0;  // the n-gram without its last word, without its first word
    uint8_t length = 0;
    bool at_begin = false;
    int64_t count = 0;                      // c of this n-gram: occurrences or continuations
    int64_t total = 0;                      // c(h .), h being this n-gram
    std::array<int64_t, 3> followers = {};  // n1, n2, n3+ of this n-gram as a history
  };

  uint32_t child(uint32_t node, Word word) const;  // 0: none
  uint32_t child_or_new(uint32_t node, Word word, uint32_t suffix);
  void count_text(const std::vector<Word>& text);
  void estimate_discounts();
  double discount(int length, int64_t count) const {
    return discounts_[length - 1][count < 3 ? count - 1 : 2];
  }

  int order_;
  std::unordered_map<std::string, Word> words_;
  std::unordered_map<uint64_t, uint32_t> children_;  // node and word -> node
  std::vector<Node> nodes_;                          // nodes_[0] is the empty history
  std::vector<std::array<double, 3>> discounts_;     // for each length: of counts 1, 2, 3 and more
};

struct Perplexity {
  double perplexity = 0;  // exp(-mean log probability of a token)
  double oov_rate = 0;    // unknown words / words
  int64_t tokens = 0;     // words plus one end of text for each text
  int64_t texts = 0;      // without the blank ones
  int64_t blank = 0;      // texts without a word: skipped
};

// Over all texts together. Throws Error (usage) when no text has a word.
Perplexity perplexity(const NgramModel& model, const std::vector<std::string>& texts);

}  // namespace elf
