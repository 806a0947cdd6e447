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
  at::Tensor informed;  // [V, 1] f64: 1 for rows that are not zero

  at::Tensor squared_times(const at::Tensor& x) const {
    return matrix.times(transposed.times(x));
  }  // M M^T x
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
  result.informed = (result.matrix.times(at::ones({size, 1}, at::kDouble)) > 0).to(at::kDouble);
  return result;
}

at::Tensor orthonormal(const at::Tensor& columns) {
  return std::get<0>(at::linalg_qr(columns));
}

// A polynomial of M M^T applied to the basis x of eigenvectors found so far: Chebyshev's of that degree (Zhou
// et al., 2006), which stays small on the squares [0, cut] that are not wanted and grows fastest beyond;
// scaled to about 1 at the largest square, `top`.
at::Tensor chebyshev(const Ppmi& ppmi, const at::Tensor& x, double cut, double top, int degree) {
  const double half = cut / 2;
  double scale = half / (top - half);
  const double first_scale = scale;
  at::Tensor before = x;
  at::Tensor now = (ppmi.squared_times(x) - half * x) * (scale / half);
  for (int i = 2; i <= degree; ++i) {
    const double next_scale = 1.0 / (2.0 / first_scale - scale);
    at::Tensor next =
        (ppmi.squared_times(now) - half * now) * (2.0 * next_scale / half) - (scale * next_scale) * before;
    before = std::move(now);
    now = std::move(next);
    scale = next_scale;
  }
  return now;
}

// The next basis. The degree keeps what the filter does to different columns within eight digits of each
// other, or orthonormalising would lose them.
at::Tensor next_basis(const Ppmi& ppmi, const at::Tensor& basis, const at::Tensor& squares, bool first) {
  const double top = squares[0].item<double>(), cut = squares[-1].item<double>();
  if (first || !(cut > 1e-12 * top)) return orthonormal(ppmi.squared_times(basis));
  const double reach = 2.0 * (2.0 * top / cut - 1.0);  // the polynomial grows by about this a degree
  const int degree = std::clamp(static_cast<int>(8.0 * std::log(10.0) / std::log(reach)), 1, 16);
  return orthonormal(chebyshev(ppmi, basis, cut, top, degree));
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
  constexpr int kMostRounds = 200;
  const int64_t size = counts.vocabulary();
  const Ppmi ppmi = make_ppmi(counts.pairs(), size, exponent);
  if (const auto informed = ppmi.informed.sum().item<double>();
      width < 1 || static_cast<double>(width) > informed) {
    usage_error("svd table: width ", width, ", but only ", informed,
                " tokens of the data occur beside another more than by chance");
  }
  // More columns than asked for: the wanted ones converge at the ratio of their singular values to the first
  // one left out. Where that is a good part of a small matrix, all columns at once are quicker, and exact.
  const int64_t some = std::min(size, width + std::clamp<int64_t>(width, 16, 64));
  const bool whole = size <= 4096 && 8 * some >= size;
  at::Tensor basis =
      whole ? at::eye(size, at::kDouble)
            : orthonormal(normal({seed, Purpose::kTable, 1}, sample_range(0, size), {some}).to(at::kDouble));
  at::Tensor values;
  for (int round = 0;; ++round) {
    const at::Tensor image = ppmi.transposed.times(basis);  // M^T Q: M is about Q (M^T Q)^T
    const auto [ascending, vectors] = at::linalg_eigh(at::mm(image.t(), image));
    const at::Tensor squares = ascending.flip({0});
    basis = at::mm(basis, vectors.flip({1}));
    const at::Tensor now = squares.narrow(0, 0, width).clamp_min(0).sqrt();
    const bool still = values.defined() && ((now - values).abs().max() <= 1e-9 * now.max()).item<bool>();
    values = now;
    if (still || whole) break;
    if (round == kMostRounds) {
      log_warning(cat("svd table: singular values still moved after ", kMostRounds, " rounds"));
      break;
    }
    basis = next_basis(ppmi, basis, squares, round < 2);
  }
  const at::Tensor u = basis.narrow(1, 0, width) * ppmi.informed;  // exact zeros where rounding left almost
  const at::Tensor peak = u.gather(0, u.abs().argmax(0, /*keepdim=*/true));
  return (u * peak.sign() * values.sqrt()).to(at::kFloat);
}

}  // namespace elf
