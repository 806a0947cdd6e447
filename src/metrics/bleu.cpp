#include "elf/metrics/bleu.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "elf/base/error.h"
#include "elf/text/unicode.h"
#include "elf/text/words.h"
#include "elf/version.h"
#include "ngrams.h"

namespace elf {
namespace {

constexpr int kOrders = 4;
constexpr double kLogOfZero = -9999999999.0;  // sacreBLEU's; exp of it is 0

struct Sums {
  std::array<double, kOrders> counts = {}, totals = {};
  int64_t sys_len = 0, ref_len = 0;
};

// Matches and lengths of one segment, added to the sums.
class SegmentCounter {
 public:
  explicit SegmentCounter(const BleuOptions& options) : options_(options) {}

  void add(const std::string& hypothesis, const std::vector<std::string_view>& references, Sums& sums) {
    const std::vector<int32_t> ids = tokens(hypothesis);
    std::vector<std::vector<int32_t>> reference_ids;
    for (const std::string_view reference : references) reference_ids.push_back(tokens(reference));
    sums.sys_len += static_cast<int64_t>(ids.size());
    sums.ref_len += closest_length(static_cast<int64_t>(ids.size()), reference_ids);
    for (int n = 1; n <= kOrders; ++n) {
      sums.totals[n - 1] += static_cast<double>(num_ngrams(ids, n));
      sums.counts[n - 1] += static_cast<double>(matches(ids, reference_ids, n));
    }
  }

 private:
  std::vector<int32_t> tokens(std::string_view segment) {
    const std::string text = options_.lowercase ? lowercase(segment) : std::string(segment);
    return numbers_.number(split_words(bleu_tokenize(options_.tokenizer, strip_space(text, false, true))));
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

  static int64_t matches(const std::vector<int32_t>& ids, const std::vector<std::vector<int32_t>>& references,
                         int n) {
    NgramCounts largest;
    for (const std::vector<int32_t>& reference : references) {
      for (const auto& [ngram, count] : count_ngrams(reference, n)) {
        int64_t& most = largest[ngram];
        most = std::max(most, count);
      }
    }
    int64_t matched = 0;
    for (const auto& [ngram, count] : count_ngrams(ids, n)) {
      const auto found = largest.find(ngram);
      if (found != largest.end()) matched += std::min(count, found->second);
    }
    return matched;
  }

  const BleuOptions& options_;
  WordNumbers numbers_;
};

double smooth_value(const BleuOptions& options) {
  return options.smooth_value.value_or(options.smoothing == BleuSmoothing::kFloor ? 0.1 : 1.0);
}

// Precisions and score from the sums (which add-k changes).
BleuScore score_of(Sums sums, const BleuOptions& options) {
  BleuScore result;
  result.sys_len = sums.sys_len;
  result.ref_len = sums.ref_len;
  if (sums.sys_len < sums.ref_len) {
    result.bp = sums.sys_len > 0
                    ? std::exp(1.0 - static_cast<double>(sums.ref_len) / static_cast<double>(sums.sys_len))
                    : 0.0;
  }
  const bool any_match =
      std::any_of(sums.counts.begin(), sums.counts.end(), [](double count) { return count != 0; });
  int order = kOrders;
  double exp_divisor = 1;
  for (int n = 1; any_match && n <= kOrders; ++n) {
    double &count = sums.counts[n - 1], &total = sums.totals[n - 1], &precision = result.precisions[n - 1];
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
  result.counts = sums.counts;
  result.totals = sums.totals;
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

std::string signature(const std::set<size_t>& reference_counts, const BleuOptions& options) {
  const std::string references =
      reference_counts.size() == 1 ? std::to_string(*reference_counts.begin()) : "var";
  return cat("nrefs:", references, "|case:", options.lowercase ? "lc" : "mixed",
             "|eff:", options.effective_order ? "yes" : "no", "|tok:", bleu_tokenizer_name(options.tokenizer),
             "|smooth:", smoothing_text(options), "|version:elf-", ELF_VERSION, "-as-sacrebleu-2.6.0");
}

}  // namespace

BleuSmoothing parse_bleu_smoothing(std::string_view name) {
  if (name == "exp") return BleuSmoothing::kExp;
  if (name == "floor") return BleuSmoothing::kFloor;
  if (name == "add-k") return BleuSmoothing::kAddK;
  if (name == "none") return BleuSmoothing::kNone;
  usage_error("BLEU smoothing: \"", name, "\" is not one of exp, floor, add-k, none");
}

BleuScore corpus_bleu(const std::vector<std::string>& hypotheses,
                      const std::vector<ReferenceStream>& references, const BleuOptions& options) {
  if (hypotheses.empty()) usage_error("BLEU: there is no hypothesis");
  if (references.empty()) usage_error("BLEU: there is no reference");
  for (size_t stream = 0; stream < references.size(); ++stream) {
    if (references[stream].size() != hypotheses.size()) {
      usage_error("BLEU: ", hypotheses.size(), " hypotheses, but ", references[stream].size(),
                  " references in stream ", stream + 1);
    }
  }
  SegmentCounter counter(options);
  Sums sums;
  std::set<size_t> reference_counts;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    std::vector<std::string_view> present;
    for (const ReferenceStream& stream : references) {
      if (stream[i]) present.push_back(*stream[i]);
    }
    if (present.empty()) usage_error("BLEU: segment ", i + 1, " has no reference");
    reference_counts.insert(present.size());
    counter.add(hypotheses[i], present, sums);
  }
  BleuScore score = score_of(sums, options);
  score.signature = signature(reference_counts, options);
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
