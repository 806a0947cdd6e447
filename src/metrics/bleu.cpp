#include "elf/metrics/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "elf/base/error.h"
#include "elf/text/unicode.h"
#include "elf/text/words.h"
#include "ngrams.h"
#include "segments.h"

namespace elf {
namespace {

constexpr int kOrders = 4;
constexpr double kLogOfZero = -9999999999.0;  // sacreBLEU's; exp of it is 0
constexpr size_t kSysLen = 0, kRefLen = 1, kCounts = 2, kTotals = kCounts + kOrders,
                 kWidth = kTotals + kOrders;  // a segment's numbers

// Matches and lengths of segments.
class SegmentCounter {
 public:
  explicit SegmentCounter(const BleuOptions& options) : options_(options) {}

  std::vector<double> count(std::string_view hypothesis, const std::vector<std::string_view>& references) {
    const std::vector<int32_t> ids = tokens(hypothesis);
    std::vector<std::vector<int32_t>> reference_ids;
    for (const std::string_view reference : references) reference_ids.push_back(tokens(reference));
    std::vector<double> numbers(kWidth);
    numbers[kSysLen] = static_cast<double>(ids.size());
    numbers[kRefLen] = static_cast<double>(closest_length(static_cast<int64_t>(ids.size()), reference_ids));
    for (int n = 1; n <= kOrders; ++n) {
      count_references(reference_ids, n);
      numbers[kTotals + n - 1] = static_cast<double>(num_ngrams(ids, n));
      numbers[kCounts + n - 1] = static_cast<double>(take_matches(ids, n, largest_));
    }
    return numbers;
  }

 private:
  std::vector<int32_t> tokens(std::string_view segment) {
    const std::string text = options_.lowercase ? lowercase(segment) : std::string(segment);
    const std::string_view stripped = strip_space(text, false, true);
    return numbers_.number(split_words(options_.custom_tokenizer
                                           ? options_.custom_tokenizer(stripped)
                                           : bleu_tokenize(options_.tokenizer, stripped)));
  }

  static int64_t closest_length(int64_t length, const std::vector<std::vector<int32_t>>& references) {
    int64_t best = static_cast<int64_t>(references.front().size());
    for (const std::vector<int32_t>& reference : references) {
      const int64_t candidate = static_cast<int64_t>(reference.size());
      const int64_t gap = std::abs(length - candidate), best_gap = std::abs(length - best);
      if (gap < best_gap || (gap == best_gap && candidate < best)) best = candidate;
    }
    return best;
  }

  // largest_: of each n-gram the largest count in one reference.
  void count_references(const std::vector<std::vector<int32_t>>& references, int n) {
    largest_.clear();
    for_each_ngram(references.front(), n, [&](const Ngram& ngram) { ++largest_[ngram]; });
    for (size_t i = 1; i < references.size(); ++i) {
      one_.clear();
      for_each_ngram(references[i], n, [&](const Ngram& ngram) { ++one_[ngram]; });
      one_.for_each([&](const Ngram& ngram, int64_t count) {
        int64_t& most = largest_[ngram];
        most = std::max(most, count);
      });
    }
  }

  const BleuOptions& options_;
  WordNumbers numbers_;
  NgramTable largest_, one_;
};

double smooth_value(const BleuOptions& options) {
  return options.smooth_value.value_or(options.smoothing == BleuSmoothing::kFloor ? 0.1 : 1.0);
}

// Precisions and score from the sums of the segments' numbers.
BleuScore score_of(const std::vector<double>& sums, const BleuOptions& options) {
  BleuScore result;
  result.sys_len = static_cast<int64_t>(sums[kSysLen]);
  result.ref_len = static_cast<int64_t>(sums[kRefLen]);
  std::copy_n(sums.begin() + kCounts, kOrders, result.counts.begin());
  std::copy_n(sums.begin() + kTotals, kOrders, result.totals.begin());
  if (result.sys_len < result.ref_len)
    result.bp = result.sys_len > 0 ? std::exp(1.0 - sums[kRefLen] / sums[kSysLen]) : 0.0;
  const bool any_match =
      std::any_of(result.counts.begin(), result.counts.end(), [](double count) { return count != 0; });
  int order = kOrders;
  double exp_divisor = 1;
  for (int n = 1; any_match && n <= kOrders; ++n) {
    double &count = result.counts[n - 1], &total = result.totals[n - 1],
           &precision = result.precisions[n - 1];
    if (options.smoothing == BleuSmoothing::kAddK && n > 1) {
      count += smooth_value(options);
      total += smooth_value(options);
    }
    if (total == 0) break;
    if (options.effective_order) order = n;
    if (count != 0) {
      precision = 100.0 * count / total;
    } else if (options.smoothing == BleuSmoothing::kExp) {
      exp_divisor *= 2;
      precision = 100.0 / (exp_divisor * total);
    } else if (options.smoothing == BleuSmoothing::kFloor) {
      precision = 100.0 * smooth_value(options) / total;
    }
  }
  if (!any_match) return result;
  double log_sum = 0;
  for (int n = 0; n < order; ++n)
    log_sum += result.precisions[n] == 0 ? kLogOfZero : std::log(result.precisions[n]);
  result.score = result.bp * std::exp(log_sum / order);
  return result;
}

std::string formatted(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

// floor and add-k put the value in the place of counts: a negative one makes negative precisions.
void check_smoothing(const BleuOptions& options) {
  if (!options.smooth_value) return;
  if (options.smoothing != BleuSmoothing::kFloor && options.smoothing != BleuSmoothing::kAddK)
    usage_error("BLEU smoothing: a value is for floor and add-k only");
  if (!(*options.smooth_value >= 0) || !std::isfinite(*options.smooth_value)) {
    usage_error("BLEU smoothing: found the value ", *options.smooth_value,
                ", expected a number from 0 (without one: 0.1 for floor, 1 for add-k)");
  }
}

std::string smoothing_text(const BleuOptions& options) {
  switch (options.smoothing) {
    case BleuSmoothing::kExp:
      return "exp";
    case BleuSmoothing::kFloor:
      return formatted("floor[%.2f]", smooth_value(options));
    case BleuSmoothing::kAddK:
      return formatted("add-k[%.2f]", smooth_value(options));
    case BleuSmoothing::kNone:
      break;
  }
  return "none";
}

}  // namespace

std::string bleu_signature(const std::vector<ReferenceStream>& references, const BleuOptions& options) {
  return cat("nrefs:", reference_count(references), "|case:", options.lowercase ? "lc" : "mixed",
             "|eff:", options.effective_order ? "yes" : "no",
             "|tok:", options.custom_tokenizer ? options.custom_name : bleu_tokenizer_name(options.tokenizer),
             "|smooth:", smoothing_text(options), signature_version());
}

BleuSmoothing parse_bleu_smoothing(std::string_view name) {
  if (name == "exp") return BleuSmoothing::kExp;
  if (name == "floor") return BleuSmoothing::kFloor;
  if (name == "add-k") return BleuSmoothing::kAddK;
  if (name == "none") return BleuSmoothing::kNone;
  usage_error("BLEU smoothing: \"", name, "\" is not one of exp, floor, add-k, none");
}

CorpusStatistics bleu_statistics(const std::vector<std::string>& hypotheses,
                                 const std::vector<ReferenceStream>& references, const BleuOptions& options) {
  check_smoothing(options);
  SegmentCounter counter(options);
  CorpusStatistics statistics;
  statistics.score = [options](const std::vector<double>& sums) { return score_of(sums, options).score; };
  for_each_segment("BLEU", hypotheses, references, [&](const Segment& segment) {
    statistics.segments.push_back(counter.count(segment.hypothesis, segment.references));
  });
  return statistics;
}

BleuScore bleu_of_sums(const std::vector<double>& sums, const BleuOptions& options) {
  return score_of(sums, options);
}

BleuScore corpus_bleu(const std::vector<std::string>& hypotheses,
                      const std::vector<ReferenceStream>& references, const BleuOptions& options) {
  BleuScore score = score_of(bleu_statistics(hypotheses, references, options).sums(), options);
  score.signature = bleu_signature(references, options);
  return score;
}

std::string bleu_line(const BleuScore& score) {
  std::string precisions;
  for (const double precision : score.precisions)
    precisions += (precisions.empty() ? "" : "/") + formatted("%.1f", precision);
  const double ratio =
      score.ref_len == 0 ? 0.0 : static_cast<double>(score.sys_len) / static_cast<double>(score.ref_len);
  return cat("BLEU = ", formatted("%.2f", score.score), " ", precisions,
             " (BP = ", formatted("%.3f", score.bp), " ratio = ", formatted("%.3f", ratio),
             " hyp_len = ", score.sys_len, " ref_len = ", score.ref_len, ")");
}

}  // namespace elf
