#include "elf/metrics/rouge.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "elf/text/porter_stemmer.h"
#include "elf/text/words.h"
#include "ngrams.h"

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

RougeValue ngram_overlap(const Ids& target, const Ids& prediction, int n) {
  const NgramCounts predicted = count_ngrams(prediction, n);
  int64_t hits = 0;
  for (const auto& [ngram, count] : count_ngrams(target, n)) {
    const auto found = predicted.find(ngram);
    if (found != predicted.end()) hits += std::min(count, found->second);
  }
  return value_of(hits, num_ngrams(prediction, n), num_ngrams(target, n));
}

// One row of the table at a time.
int64_t lcs_length(const Ids& target, const Ids& prediction) {
  std::vector<int32_t> row(prediction.size() + 1, 0);
  for (const int32_t word : target) {
    int32_t diagonal = 0;
    for (size_t j = 1; j <= prediction.size(); ++j) {
      const int32_t above = row[j];
      row[j] = word == prediction[j - 1] ? diagonal + 1 : std::max(above, row[j - 1]);
      diagonal = above;
    }
  }
  return row.back();
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

std::vector<Ids> lines_as_ids(std::string_view text, const RougeOptions& options, WordNumbers& numbers) {
  std::vector<Ids> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(numbers.number(rouge_tokens(text.substr(0, end), options)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Ids joined(const std::vector<Ids>& lines) {
  Ids all;
  for (const Ids& line : lines) all.insert(all.end(), line.begin(), line.end());
  return all;
}

}  // namespace

std::vector<std::string> rouge_tokens(std::string_view text, const RougeOptions& options) {
  std::vector<std::string> tokens;
  std::string token;
  const auto finish = [&] {
    if (token.empty()) return;
    tokens.push_back(options.stemmer && token.size() > 3 ? porter_stem(token) : token);
    token.clear();
  };
  for (const char c : lowercase(text)) {
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      token.push_back(c);
    } else {
      finish();
    }
  }
  finish();
  return tokens;
}

RougeScore rouge(std::string_view target, std::string_view prediction, const RougeOptions& options) {
  WordNumbers numbers;
  const std::vector<Ids> target_lines = lines_as_ids(target, options, numbers);
  const std::vector<Ids> prediction_lines = lines_as_ids(prediction, options, numbers);
  const Ids target_ids = joined(target_lines), prediction_ids = joined(prediction_lines);
  RougeScore score;
  score.rouge1 = ngram_overlap(target_ids, prediction_ids, 1);
  score.rouge2 = ngram_overlap(target_ids, prediction_ids, 2);
  score.rougeL = value_of(lcs_length(target_ids, prediction_ids), static_cast<int64_t>(prediction_ids.size()),
                          static_cast<int64_t>(target_ids.size()));
  score.rougeLsum = summary_lcs(target_lines, prediction_lines);
  return score;
}

RougeScore mean_rouge(const std::vector<RougeScore>& scores) {
  RougeScore mean;
  for (const auto type :
       {&RougeScore::rouge1, &RougeScore::rouge2, &RougeScore::rougeL, &RougeScore::rougeLsum}) {
    for (const auto figure : {&RougeValue::precision, &RougeValue::recall, &RougeValue::fmeasure}) {
      double sum = 0;
      for (const RougeScore& score : scores) sum += score.*type.*figure;
      mean.*type.*figure = scores.empty() ? 0.0 : sum / static_cast<double>(scores.size());
    }
  }
  return mean;
}

}  // namespace elf
