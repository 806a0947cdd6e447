#include "elf/optim/newton_schulz.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "symmetric_product.h"

namespace elf {
namespace {

constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;

// Iterations done on the square matrix before X is formed again, and from which size and aspect ratio on that
// pays.
constexpr int64_t kStage = 3, kShorter = 64;
constexpr double kAspect = 1.5;

// The sum of a b^T, which is known to be symmetric.
at::Tensor symmetric(const at::Tensor& a, const at::Tensor& b, const SymmetricSum& sum = {}) {
  if (serves_symmetric_product(a)) return symmetric_product(a, b, sum);
  at::Tensor result = at::matmul(a, b.mT());
  if (sum.product != 1) result.mul_(sum.product);
  if (sum.plus.defined()) result.add_(sum.plus, sum.plus_factor);
  if (sum.diagonal != 0) result.diagonal(0, -2, -1).add_(sum.diagonal);
  return result;
}

// The sum of a b, symmetric matrices that commute. (Their columns, not their rows, lie side by side: so they
// are packed faster.)
at::Tensor commuting(const at::Tensor& a, const at::Tensor& b, const SymmetricSum& sum = {}) {
  return symmetric(a.mT(), b.mT(), sum);
}

// a I + b G + c G^2
at::Tensor polynomial(const at::Tensor& gram) {
  return commuting(gram, gram, {.product = kC, .plus_factor = kB, .diagonal = kA, .plus = gram});
}

// Q with X_{k + count} = Q X_k, from G = X_k X_k^T. All matrices here are polynomials of G: they commute and
// are symmetric.
at::Tensor product_of_iterations(at::Tensor gram, int64_t count) {
  at::Tensor q;
  for (int64_t i = 0; i < count; ++i) {
    const at::Tensor p = polynomial(gram);
    q = q.defined() ? commuting(q, p) : p;
    if (i + 1 < count) gram = commuting(commuting(gram, p), p);
  }
  return q;
}

// The result of all iterations, its last product not yet taken: square * rest, or rest * square for a tall
// matrix.
struct Factors {
  at::Tensor square, rest;
  bool tall;
};

Factors factors_of(const at::Tensor& x, int64_t iterations) {
  const bool tall = x.size(-2) > x.size(-1);
  const auto gram_of = [&](const at::Tensor& y) {
    const at::Tensor wide = tall ? y.mT() : y;
    return symmetric(wide, wide);
  };
  const int64_t shorter = std::min(x.size(-2), x.size(-1)), longer = std::max(x.size(-2), x.size(-1));
  const bool pays =
      shorter >= kShorter && static_cast<double>(longer) >= kAspect * static_cast<double>(shorter);
  const int64_t stage = pays ? kStage : 1;

  at::Tensor rest = x, gram = gram_of(x);
  const at::Tensor norm = gram.diagonal(0, -2, -1).sum(-1).sqrt().unsqueeze(-1).unsqueeze(-1);
  const at::Tensor scale = (norm + 1e-8).reciprocal();
  gram.mul_(scale * scale);
  for (int64_t done = 0;;) {
    const int64_t count = std::min(stage, iterations - done);
    at::Tensor square = product_of_iterations(gram, count);
    if (done == 0) square.mul_(scale);
    done += count;
    if (done >= iterations) return {square, rest, tall};
    rest = tall ? at::matmul(rest, square) : at::matmul(square, rest);
    gram = gram_of(rest);
  }
}

}  // namespace

at::Tensor newton_schulz(const at::Tensor& x, int64_t iterations) {
  const Factors f = factors_of(x, iterations);
  return f.tall ? at::matmul(f.rest, f.square) : at::matmul(f.square, f.rest);
}

void add_newton_schulz(const at::Tensor& target, const at::Tensor& x, double factor, int64_t iterations) {
  const Factors f = factors_of(x, iterations);
  const at::Tensor &left = f.tall ? f.rest : f.square, &right = f.tall ? f.square : f.rest;
  at::Tensor sum = target;
  if (sum.dim() == 2) {
    sum.addmm_(left, right, 1, factor);
  } else {
    sum.baddbmm_(left, right, 1, factor);
  }
}

double newton_schulz_cost(int64_t rows, int64_t columns) {
  const auto shorter = static_cast<double>(std::min(rows, columns));
  const auto longer = static_cast<double>(std::max(rows, columns));
  return shorter * shorter * (3 * longer + 7 * shorter);
}

}  // namespace elf
