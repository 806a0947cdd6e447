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

// Lets maps of strings be asked with views.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <class Value>
using StringMap = std::unordered_map<std::string, Value, StringHash, std::equal_to<>>;

// Numbers words in the order in which they come.
class WordNumbers {
 public:
  int32_t number_of(std::string_view word) {
    if (const auto found = numbers_.find(word); found != numbers_.end()) return found->second;
    return numbers_.emplace(word, static_cast<int32_t>(numbers_.size())).first->second;
  }

  template <class Words>
  std::vector<int32_t> number(const Words& words) {
    std::vector<int32_t> ids;
    ids.reserve(words.size());
    for (const auto& word : words) ids.push_back(number_of(word));
    return ids;
  }

 private:
  StringMap<int32_t> numbers_;
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

// Counts of one text's n-grams, for use text after text: one flat table that grows to the longest text and is
// emptied in no time.
class NgramTable {
 public:
  void clear() {
    ++round_;
    used_ = 0;
  }

  // The count of `ngram`, which becomes 0 when it is new. Valid until the next call.
  int64_t& operator[](const Ngram& ngram) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[place_of(ngram)];
    if (slot.round != round_) {
      slot = {ngram, round_, 0};
      ++used_;
    }
    return slot.count;
  }

  // Null when there is none.
  int64_t* find(const Ngram& ngram) {
    if (used_ == 0) return nullptr;
    Slot& slot = slots_[place_of(ngram)];
    return slot.round == round_ ? &slot.count : nullptr;
  }

  template <class F>
  void for_each(F&& f) const {
    for (const Slot& slot : slots_) {
      if (slot.round == round_) f(slot.ngram, slot.count);
    }
  }

 private:
  struct Slot {
    Ngram ngram = {};
    uint64_t round = 0;  // in use when it is the table's
    int64_t count = 0;
  };

  size_t place_of(const Ngram& ngram) const {
    const size_t mask = slots_.size() - 1;
    size_t place = NgramHash()(ngram) & mask;
    while (slots_[place].round == round_ && slots_[place].ngram != ngram) place = (place + 1) & mask;
    return place;
  }

  void grow() {
    std::vector<Slot> old(std::max<size_t>(64, 4 * slots_.size()));
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.round == round_) slots_[place_of(slot.ngram)] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two
  uint64_t round_ = 1;
  size_t used_ = 0;
};

// Calls f(ngram) for each run of n ids, from left to right. 1 <= n <= kMaxNgram.
template <class F>
void for_each_ngram(const std::vector<int32_t>& ids, int n, F&& f) {
  Ngram ngram;
  ngram.fill(-1);
  for (size_t start = 0; start + n <= ids.size(); ++start) {
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

// n-grams of `ids` that `reference` holds, each counted at most as often as there; takes them off
// `reference`.
inline int64_t take_matches(const std::vector<int32_t>& ids, int n, NgramTable& reference) {
  int64_t matches = 0;
  for_each_ngram(ids, n, [&](const Ngram& ngram) {
    int64_t* left = reference.find(ngram);
    if (left == nullptr || *left == 0) return;
    --*left;
    ++matches;
  });
  return matches;
}

}  // namespace elf
