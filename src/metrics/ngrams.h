// Words as numbers and runs of up to four of them as hash keys: what BLEU, ROUGE and the diversity figures
// count with.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace elf {

constexpr int kMaxNgram = 4;

// Numbers words in the order in which they come.
class WordNumbers {
 public:
  template <class Words>
  std::vector<int32_t> number(const Words& words) {
    std::vector<int32_t> ids;
    ids.reserve(words.size());
    for (const auto& word : words)
      ids.push_back(
          numbers_.try_emplace(std::string(word), static_cast<int32_t>(numbers_.size())).first->second);
    return ids;
  }

 private:
  std::unordered_map<std::string, int32_t> numbers_;
};

// Shorter n-grams are filled up with -1, which is no word's number.
using Ngram = std::array<int32_t, kMaxNgram>;

struct NgramHash {
  size_t operator()(const Ngram& ngram) const {
    uint64_t hash = 0;
    for (const int32_t id : ngram) {
      hash = (hash ^ static_cast<uint32_t>(id)) * 0x9E3779B97F4A7C15ull;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

using NgramCounts = std::unordered_map<Ngram, int64_t, NgramHash>;

// Calls f(ngram) for each run of n ids, from left to right. 1 <= n <= kMaxNgram.
template <class F>
void for_each_ngram(const std::vector<int32_t>& ids, int n, F&& f) {
  Ngram ngram;
  for (size_t start = 0; start + n <= ids.size(); ++start) {
    ngram.fill(-1);
    std::copy_n(ids.begin() + static_cast<std::ptrdiff_t>(start), n, ngram.begin());
    f(ngram);
  }
}

inline NgramCounts count_ngrams(const std::vector<int32_t>& ids, int n) {
  NgramCounts counts;
  for_each_ngram(ids, n, [&](const Ngram& ngram) { ++counts[ngram]; });
  return counts;
}

inline int64_t num_ngrams(const std::vector<int32_t>& ids, int n) {
  return std::max<int64_t>(0, static_cast<int64_t>(ids.size()) - n + 1);
}

}  // namespace elf
