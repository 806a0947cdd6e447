#include "elf/model/cooccurrence.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/tensor/random.h"

namespace elf {
namespace {

using Pair = CooccurrenceCounter::Pair;
constexpr size_t kBufferedPairs = size_t{1} << 23;

bool before(const Pair& a, const Pair& b) {
  return a.low != b.low ? a.low < b.low : a.high < b.high;
}

// Sums neighbours with equal keys.
void combine(std::vector<Pair>& pairs) {
  size_t end = 0;
  for (const Pair& pair : pairs) {
    if (end > 0 && pairs[end - 1].low == pair.low && pairs[end - 1].high == pair.high) {
      pairs[end - 1].weight += pair.weight;
    } else {
      pairs[end++] = pair;
    }
  }
  pairs.resize(end);
}

// A sparse [V, V] matrix by rows.
struct Sparse {
  std::vector<int64_t> starts;  // [V + 1]
  std::vector<uint32_t> columns;
  std::vector<double> values;

  // this [V, V] * dense [V, k] f64
  at::Tensor times(const at::Tensor& dense) const {
    const at::Tensor right = dense.contiguous();
    const auto rows = static_cast<int64_t>(starts.size()) - 1;
    const int64_t width = right.size(1);
    at::Tensor product = at::zeros({rows, width}, at::kDouble);
    const double* in = right.data_ptr<double>();
    double* out = product.data_ptr<double>();
    at::parallel_for(0, rows, 16, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t at = starts[row]; at < starts[row + 1]; ++at) {
          const double value = values[at];
          const double* from = in + static_cast<int64_t>(columns[at]) * width;
          for (int64_t c = 0; c < width; ++c) out[row * width + c] += value * from[c];
        }
      }
    });
    return product;
  }
};

// Calls use(i, j, weight) for both orders of every pair.
template <class Use>
void for_each_entry(const std::vector<Pair>& pairs, Use use) {
  for (const Pair& pair : pairs) {
    use(pair.low, pair.high, static_cast<double>(pair.weight));
    if (pair.low != pair.high) use(pair.high, pair.low, static_cast<double>(pair.weight));
  }
}

// The symmetric pattern of the counts with value(i, j, weight) at each place.
template <class Value>
Sparse make_sparse(const std::vector<Pair>& pairs, int64_t size, Value value) {
  Sparse matrix;
  matrix.starts.assign(static_cast<size_t>(size) + 1, 0);
  for_each_entry(pairs, [&](uint32_t i, uint32_t, double) { ++matrix.starts[i + 1]; });
  std::partial_sum(matrix.starts.begin(), matrix.starts.end(), matrix.starts.begin());
  std::vector<int64_t> next(matrix.starts.begin(), matrix.starts.end() - 1);
  matrix.columns.resize(static_cast<size_t>(matrix.starts.back()));
  matrix.values.resize(matrix.columns.size());
  for_each_entry(pairs, [&](uint32_t i, uint32_t j, double weight) {
    const int64_t at = next[i]++;
    matrix.columns[at] = j;
    matrix.values[at] = value(i, j, weight);
  });
  return matrix;
}

struct Ppmi {
  Sparse matrix, transposed;
  int64_t tokens_seen = 0;
};

Ppmi make_ppmi(const std::vector<Pair>& pairs, int64_t size, double exponent) {
  std::vector<double> row(static_cast<size_t>(size), 0.0), context(row);
  for_each_entry(pairs, [&](uint32_t i, uint32_t, double weight) { row[i] += weight; });
  const double total = std::accumulate(row.begin(), row.end(), 0.0);
  double context_total = 0;
  for (size_t j = 0; j < row.size(); ++j)
    context_total += context[j] = row[j] > 0 ? std::pow(row[j] / total, exponent) : 0.0;
  const auto value = [&](uint32_t i, uint32_t j, double weight) {
    return std::max(0.0, std::log(weight / row[i] * context_total / context[j]));
  };
  Ppmi result;
  result.matrix = make_sparse(pairs, size, value);
  result.transposed =
      make_sparse(pairs, size, [&](uint32_t i, uint32_t j, double weight) { return value(j, i, weight); });
  result.tokens_seen = std::count_if(row.begin(), row.end(), [](double sum) { return sum > 0; });
  return result;
}

at::Tensor orthonormal(const at::Tensor& columns) {
  return std::get<0>(at::linalg_qr(columns));
}

}  // namespace

CooccurrenceCounter::CooccurrenceCounter(int64_t vocabulary, int64_t window)
    : vocabulary_(vocabulary), window_(window) {
  if (window < 1 || window > 10) usage_error("co-occurrence window: found ", window, ", expected 1 to 10");
  int64_t multiple = 1;
  for (int64_t d = 2; d <= window; ++d) multiple = std::lcm(multiple, d);
  units_.push_back(0);
  for (int64_t d = 1; d <= window; ++d) units_.push_back(static_cast<uint64_t>(multiple / d));
}

void CooccurrenceCounter::add(const std::vector<int32_t>& document) {
  const auto length = static_cast<int64_t>(document.size());
  tokens_ += length;
  for (int64_t i = 0; i < length; ++i) {
    if (document[i] < 0 || document[i] >= vocabulary_) {
      usage_error("co-occurrence: id ", document[i], " is outside the vocabulary of ", vocabulary_);
    }
    for (int64_t d = 1; d <= std::min(window_, i); ++d) {
      const auto a = static_cast<uint32_t>(document[i - d]), b = static_cast<uint32_t>(document[i]);
      // On the diagonal both orders are the one entry.
      buffer_.push_back({std::min(a, b), std::max(a, b), a == b ? 2 * units_[d] : units_[d]});
    }
  }
  if (buffer_.size() >= kBufferedPairs) fold();
}

void CooccurrenceCounter::fold() {
  std::sort(buffer_.begin(), buffer_.end(), before);
  combine(buffer_);
  std::vector<Pair> merged;
  merged.reserve(sorted_.size() + buffer_.size());
  std::merge(sorted_.begin(), sorted_.end(), buffer_.begin(), buffer_.end(), std::back_inserter(merged),
             before);
  combine(merged);
  sorted_ = std::move(merged);
  buffer_.clear();
}

const std::vector<Pair>& CooccurrenceCounter::pairs() {
  if (!buffer_.empty()) fold();
  return sorted_;
}

at::Tensor ppmi_svd(CooccurrenceCounter& counts, int64_t width, double exponent, uint64_t seed) {
  constexpr int kMostRounds = 400;
  const int64_t size = counts.vocabulary();
  const Ppmi ppmi = make_ppmi(counts.pairs(), size, exponent);
  if (width < 1 || width > ppmi.tokens_seen) {
    usage_error("svd table: width ", width, ", but only ", ppmi.tokens_seen,
                " tokens of the data occur beside another");
  }
  // More columns than asked for: the wanted ones converge at the ratio of their singular values to the first
  // one left out.
  const int64_t columns = std::min(size, width + std::clamp<int64_t>(width, 16, 64));
  at::Tensor basis =
      orthonormal(normal({seed, Purpose::kTable, 1}, sample_range(0, size), {columns}).to(at::kDouble));
  at::Tensor values, rotation;
  int round = 0;
  for (; round < kMostRounds; ++round) {
    const at::Tensor image = ppmi.transposed.times(basis);  // M^T Q: M is about Q (M^T Q)^T
    const auto [squares, vectors] = at::linalg_eigh(at::mm(image.t(), image));
    const at::Tensor now = squares.flip({0}).narrow(0, 0, width).clamp_min(0).sqrt();
    const bool still = values.defined() && ((now - values).abs().max() <= 1e-9 * now.max()).item<bool>();
    values = now;
    rotation = vectors.flip({1}).narrow(1, 0, width);
    if (still) break;
    basis = orthonormal(ppmi.matrix.times(image));
  }
  if (round == kMostRounds)
    log_warning(cat("svd table: singular values still moved after ", kMostRounds, " rounds"));
  const at::Tensor u = at::mm(basis, rotation);
  const at::Tensor peak = u.gather(0, u.abs().argmax(0, /*keepdim=*/true));
  return (u * peak.sign() * values.sqrt()).to(at::kFloat);
}

}  // namespace elf
