#include "elf/metrics/rouge.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <random>
#include <unordered_map>

#include "elf/base/error.h"
#include "ngrams.h"
#include "rouge_tokens.h"

namespace elf {
namespace {

using Ids = std::vector<int32_t>;

RougeValue value_of(int64_t hits, int64_t predicted, int64_t wanted) {
  RougeValue value;
  value.precision = static_cast<double>(hits) / static_cast<double>(std::max<int64_t>(predicted, 1));
  value.recall = static_cast<double>(hits) / static_cast<double>(std::max<int64_t>(wanted, 1));
  const double sum = value.precision + value.recall;
  value.fmeasure = sum > 0 ? 2 * value.precision * value.recall / sum : 0.0;
  return value;
}

// Marks the positions of `target` that belong to its LCS with `prediction`. Of several longest ones, the one
// that the package finds: walking back from both ends, to the left in the prediction only where that is
// strictly longer.
void mark_lcs(const Ids& target, const Ids& prediction, std::vector<bool>& marked) {
  const size_t width = prediction.size() + 1;
  std::vector<int32_t> table((target.size() + 1) * width, 0);
  for (size_t i = 1; i <= target.size(); ++i) {
    for (size_t j = 1; j < width; ++j) {
      table[i * width + j] = target[i - 1] == prediction[j - 1]
                                 ? table[(i - 1) * width + j - 1] + 1
                                 : std::max(table[(i - 1) * width + j], table[i * width + j - 1]);
    }
  }
  for (size_t i = target.size(), j = prediction.size(); i > 0 && j > 0;) {
    if (target[i - 1] == prediction[j - 1]) {
      marked[i - 1] = true;
      --i;
      --j;
    } else if (table[i * width + j - 1] > table[(i - 1) * width + j]) {
      --j;
    } else {
      --i;
    }
  }
}

std::unordered_map<int32_t, int64_t> count_words(const std::vector<Ids>& lines) {
  std::unordered_map<int32_t, int64_t> counts;
  for (const Ids& line : lines) {
    for (const int32_t word : line) ++counts[word];
  }
  return counts;
}

int64_t total_words(const std::vector<Ids>& lines) {
  int64_t total = 0;
  for (const Ids& line : lines) total += static_cast<int64_t>(line.size());
  return total;
}

RougeValue summary_lcs(const std::vector<Ids>& target, const std::vector<Ids>& prediction) {
  std::unordered_map<int32_t, int64_t> left_in_target = count_words(target),
                                       left_in_prediction = count_words(prediction);
  int64_t hits = 0;
  for (const Ids& line : target) {
    std::vector<bool> marked(line.size(), false);
    for (const Ids& other : prediction) mark_lcs(line, other, marked);
    for (size_t i = 0; i < line.size(); ++i) {
      if (!marked[i] || left_in_target[line[i]] <= 0 || left_in_prediction[line[i]] <= 0) continue;
      ++hits;
      --left_in_target[line[i]];
      --left_in_prediction[line[i]];
    }
  }
  return value_of(hits, total_words(prediction), total_words(target));
}

Ids joined(const std::vector<Ids>& lines) {
  Ids all;
  for (const Ids& line : lines) all.insert(all.end(), line.begin(), line.end());
  return all;
}

// The figures of a mean, in the order in which the package resamples them.
constexpr RougeValue RougeScore::*kTypes[] = {&RougeScore::rouge1, &RougeScore::rouge2, &RougeScore::rougeL,
                                              &RougeScore::rougeLsum};
constexpr double RougeValue::*kFigures[] = {&RougeValue::precision, &RougeValue::recall,
                                            &RougeValue::fmeasure};

// numpy.random.RandomState.choice(n): the Mersenne Twister's words cut to as many bits as n - 1 has, those
// above thrown away.
class LegacyChoice {
 public:
  explicit LegacyChoice(uint32_t seed) : words_(seed) {}

  uint32_t below(uint32_t bound) {
    if (bound == 1) return 0;
    const uint32_t mask = std::bit_ceil(bound) - 1;
    uint32_t value;
    while ((value = static_cast<uint32_t>(words_()) & mask) >= bound) {
    }
    return value;
  }

 private:
  std::mt19937 words_;
};

// Of sorted values, with linear interpolation between neighbours.
double percentile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

}  // namespace

struct RougeScorer::Impl {
  RougeOptions options;
  WordNumbers numbers{};                // of compared forms
  StringMap<int32_t> number_of_word{};  // the number of a word's compared form
  NgramTable table{};
  std::vector<int32_t> place{};  // of a word in the target: a row of masks, -1: not there
  std::vector<uint64_t> masks{}, ends{};

  int32_t number_of(std::string_view word) {
    if (const auto found = number_of_word.find(word); found != number_of_word.end()) return found->second;
    const int32_t number = numbers.number_of(rouge_form(word, options));
    number_of_word.emplace(word, number);
    return number;
  }

  Ids ids_of(std::string_view text) {
    Ids ids;
    for_each_rouge_word(text, options.tokenizer,
                        [&](std::string_view word) { ids.push_back(number_of(word)); });
    return ids;
  }

  std::vector<Ids> lines_of(std::string_view text) {
    std::vector<Ids> lines;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      if (options.split_sentences) {
        for (const std::string_view sentence : split_sentences(line)) lines.push_back(ids_of(sentence));
      } else {
        lines.push_back(ids_of(line));
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
  }

  RougeValue ngram_overlap(const Ids& target, const Ids& prediction, int n) {
    table.clear();
    for_each_ngram(target, n, [&](const Ngram& ngram) { ++table[ngram]; });
    return value_of(take_matches(prediction, n, table), num_ngrams(prediction, n), num_ngrams(target, n));
  }

  // Bit j of `ends` is clear when the LCS of target[0..j] with the prediction so far is longer than that of
  // target[0..j-1] (Hyyrö 2004): a word of the prediction costs one addition per 64 words of the target.
  int64_t lcs_length(const Ids& target, const Ids& prediction) {
    const size_t blocks = (target.size() + 63) / 64;
    masks.clear();
    for (size_t j = 0; j < target.size(); ++j) {
      const auto word = static_cast<size_t>(target[j]);
      if (word >= place.size()) place.resize(2 * word + 64, -1);
      if (place[word] < 0) {
        place[word] = static_cast<int32_t>(masks.size() / blocks);
        masks.resize(masks.size() + blocks, 0);
      }
      masks[static_cast<size_t>(place[word]) * blocks + j / 64] |= uint64_t{1} << j % 64;
    }
    ends.assign(blocks, ~uint64_t{0});
    for (const int32_t word : prediction) {
      if (static_cast<size_t>(word) >= place.size() || place[word] < 0) continue;
      const uint64_t* mask = &masks[static_cast<size_t>(place[word]) * blocks];
      uint64_t carry = 0;
      for (size_t b = 0; b < blocks; ++b) {
        const unsigned __int128 sum = static_cast<unsigned __int128>(ends[b]) + (ends[b] & mask[b]) + carry;
        carry = static_cast<uint64_t>(sum >> 64);
        ends[b] = static_cast<uint64_t>(sum) | (ends[b] & ~mask[b]);
      }
    }
    for (const int32_t word : target) place[word] = -1;
    int64_t length = 0;
    for (size_t j = 0; j < target.size(); ++j) length += (ends[j / 64] >> j % 64 & 1) == 0;
    return length;
  }

  RougeScore score(std::string_view target, std::string_view prediction) {
    const std::vector<Ids> target_lines = lines_of(target), prediction_lines = lines_of(prediction);
    const Ids target_ids = joined(target_lines), prediction_ids = joined(prediction_lines);
    RougeScore score;
    score.rouge1 = ngram_overlap(target_ids, prediction_ids, 1);
    score.rouge2 = ngram_overlap(target_ids, prediction_ids, 2);
    score.rougeL =
        value_of(lcs_length(target_ids, prediction_ids), static_cast<int64_t>(prediction_ids.size()),
                 static_cast<int64_t>(target_ids.size()));
    const bool single = target_lines.size() <= 1 && prediction_lines.size() <= 1;
    score.rougeLsum = single ? score.rougeL : summary_lcs(target_lines, prediction_lines);
    return score;
  }
};

RougeScorer::RougeScorer(const RougeOptions& options) : impl_(new Impl{options}) {}
RougeScorer::~RougeScorer() = default;
RougeScorer::RougeScorer(RougeScorer&&) noexcept = default;

RougeScore RougeScorer::score(std::string_view target, std::string_view prediction) {
  return impl_->score(target, prediction);
}

RougeScore rouge(std::string_view target, std::string_view prediction, const RougeOptions& options) {
  return RougeScorer(options).score(target, prediction);
}

RougeScore mean_rouge(const std::vector<RougeScore>& scores) {
  RougeScore mean;
  for (const auto type : kTypes) {
    for (const auto figure : kFigures) {
      double sum = 0;
      for (const RougeScore& score : scores) sum += score.*type.*figure;
      mean.*type.*figure = scores.empty() ? 0.0 : sum / static_cast<double>(scores.size());
    }
  }
  return mean;
}

RougeInterval rouge_interval(const std::vector<RougeScore>& scores, int resamples, uint32_t seed,
                             double confidence) {
  if (scores.empty()) usage_error("ROUGE bootstrap: there is no score");
  if (resamples < 2) usage_error("ROUGE bootstrap: found ", resamples, " resamples, expected at least 2");
  if (!(confidence > 0 && confidence < 1))
    usage_error("ROUGE bootstrap: found a confidence of ", confidence, ", expected 0 to 1");
  LegacyChoice choice(seed);
  RougeInterval interval;
  for (const auto type : kTypes) {
    std::array<std::vector<double>, std::size(kFigures)> means;
    for (int i = 0; i < resamples; ++i) {
      std::array<double, std::size(kFigures)> sums = {};
      for (size_t draw = 0; draw < scores.size(); ++draw) {
        const RougeValue& value = scores[choice.below(static_cast<uint32_t>(scores.size()))].*type;
        for (size_t f = 0; f < sums.size(); ++f) sums[f] += value.*kFigures[f];
      }
      for (size_t f = 0; f < sums.size(); ++f)
        means[f].push_back(sums[f] / static_cast<double>(scores.size()));
    }
    for (size_t f = 0; f < means.size(); ++f) {
      std::sort(means[f].begin(), means[f].end());
      interval.low.*type.*kFigures[f] = percentile(means[f], (1 - confidence) / 2);
      interval.mid.*type.*kFigures[f] = percentile(means[f], 0.5);
      interval.high.*type.*kFigures[f] = percentile(means[f], 1 - (1 - confidence) / 2);
    }
  }
  return interval;
}

}  // namespace elf
