#include "elf/metrics/diversity.h"

#include <cmath>
#include <unordered_set>

#include "elf/text/words.h"
#include "ngrams.h"

namespace elf {
namespace {

double entropy_of(const NgramCounts& counts, int64_t total) {
  double entropy = 0;
  for (const auto& [ngram, count] : counts) {
    const double share = static_cast<double>(count) / static_cast<double>(total);
    entropy -= share * std::log(share);
  }
  return entropy;
}

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0.0;
}

struct IdsHash {
  size_t operator()(const std::vector<int32_t>& ids) const {
    uint64_t hash = ids.size();
    for (const int32_t id : ids) {
      hash = (hash ^ static_cast<uint32_t>(id)) * 0x9E3779B97F4A7C15ull;
      hash ^= hash >> 29;
    }
    return hash;
  }
};

}  // namespace

Diversity diversity(const std::vector<std::vector<int32_t>>& texts) {
  Diversity result;
  std::array<NgramCounts, 4> counts;
  std::array<int64_t, 4> totals = {};
  double entropies = 0, repeated = 0;
  int64_t with_4grams = 0;
  for (const std::vector<int32_t>& text : texts) {
    ++result.samples;
    if (text.empty()) {
      ++result.blank;
      continue;
    }
    for (int n = 1; n <= 4; ++n) {
      for_each_ngram(text, n, [&](const Ngram& ngram) { ++counts[n - 1][ngram]; });
      totals[n - 1] += num_ngrams(text, n);
    }
    entropies += entropy_of(count_ngrams(text, 1), num_ngrams(text, 1));
    if (num_ngrams(text, 4) > 0) {
      ++with_4grams;
      repeated += 1.0 - share(static_cast<double>(count_ngrams(text, 4).size()),
                              static_cast<double>(num_ngrams(text, 4)));
    }
  }
  const double spoken = static_cast<double>(result.samples - result.blank);
  result.entropy = share(entropies, spoken);
  result.corpus_entropy = totals[0] > 0 ? entropy_of(counts[0], totals[0]) : 0.0;
  for (int n = 0; n < 4; ++n)
    result.distinct[n] = share(static_cast<double>(counts[n].size()), static_cast<double>(totals[n]));
  result.rep4 = share(repeated, static_cast<double>(with_4grams));
  result.mean_length = share(static_cast<double>(totals[0]), spoken);
  return result;
}

Diversity diversity(const std::vector<std::string>& texts) {
  WordNumbers numbers;
  std::vector<std::vector<int32_t>> ids;
  ids.reserve(texts.size());
  for (const std::string& text : texts) ids.push_back(numbers.number(split_words(text)));
  return diversity(ids);
}

Novelty novelty(const std::vector<std::string>& texts, const std::vector<std::string>& training_texts) {
  WordNumbers numbers;
  std::unordered_set<Ngram, NgramHash> known_trigrams;
  std::unordered_set<std::vector<int32_t>, IdsHash> known_texts;
  for (const std::string& text : training_texts) {
    std::vector<int32_t> ids = numbers.number(split_words(text));
    for_each_ngram(ids, 3, [&](const Ngram& trigram) { known_trigrams.insert(trigram); });
    known_texts.insert(std::move(ids));
  }
  double trigrams = 0, new_trigrams = 0, spoken = 0, copies = 0;
  for (const std::string& text : texts) {
    const std::vector<int32_t> ids = numbers.number(split_words(text));
    if (ids.empty()) continue;
    ++spoken;
    copies += static_cast<double>(known_texts.count(ids));
    for_each_ngram(ids, 3, [&](const Ngram& trigram) {
      ++trigrams;
      new_trigrams += known_trigrams.count(trigram) == 0 ? 1 : 0;
    });
  }
  return {share(new_trigrams, trigrams), share(copies, spoken)};
}

}  // namespace elf
