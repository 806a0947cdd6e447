// Products of float32 matrices on the CPU whose result is known to be symmetric: half of it is computed, the
// rest is its mirror image.
#pragma once

#include <ATen/core/Tensor.h>

namespace elf {

// What becomes of a product: product * (a b^T) + plus_factor * plus + diagonal * I, plus [m, m] symmetric or
// undefined.
struct SymmetricSum {
  double product = 1, plus_factor = 0, diagonal = 0;
  at::Tensor plus{};
};

// a b^T, a and b [m, k] (any strides, dense along one of the two), which the caller knows to be symmetric: b
// is a, or both are polynomials of one symmetric matrix. -> [m, m] contiguous. Runs on the threads of ATen,
// or on the caller's alone inside a parallel region.
at::Tensor symmetric_product(const at::Tensor& a, const at::Tensor& b, const SymmetricSum& sum = {});

// Whether there is a loop for this machine and these tensors; elsewhere a whole product is as fast.
bool serves_symmetric_product(const at::Tensor& a);

}  // namespace elf
