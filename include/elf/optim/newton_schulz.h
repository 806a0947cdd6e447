// The nearest semi-orthogonal matrix by quintic Newton-Schulz iterations (as optax.contrib.muon):
//   X_0 = X / (|X|_F + 1e-8),   X_{k+1} = (a I + b G + c G^2) X_k,   G = X_k X_k^T,
// taken over the shorter side, (a, b, c) = (3.4445, -4.7750, 2.0315). Singular values end near 1 (in about
// [0.7, 1.2]), zero stays zero.
//
// G stays a polynomial of the first X X^T, so several iterations can be done on that small square matrix
// alone, and their product be applied to X once. Rounding errors of small singular values grow on that way;
// forming G anew after three iterations keeps the accuracy of the plain form at condition number 1000, and
// leaves 1e-4 of the norm where singular values are zero (a rank-one matrix of 200 x 500). It is done for
// matrices large and long enough for it to pay.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace elf {

// x [..., R, C] f32 -> the same shape.
at::Tensor newton_schulz(const at::Tensor& x, int64_t iterations = 5);

// target [..., R, C] += factor * newton_schulz(x), without a tensor in between.
void add_newton_schulz(const at::Tensor& target, const at::Tensor& x, double factor, int64_t iterations = 5);

// Multiply-adds of one matrix, about.
double newton_schulz_cost(int64_t rows, int64_t columns);

}  // namespace elf
