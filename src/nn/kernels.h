// Small pieces that the CPU loops of this folder share.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace elf::nn {

// Rows of one piece of a parallel loop: enough work to pay for waking a thread. It depends on the width only,
// not on the machine, because it fixes the order of sums over rows.
inline int64_t rows_per_piece(int64_t width) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, width));
}

// Sum of term(0) ... term(count - 1) in eight running sums: the compiler may keep them in vector registers,
// which strict float addition in one running sum forbids.
template <class Term>
inline float sum_of(int64_t count, Term term) {
  std::array<float, 8> sums{};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int64_t k = 0; k < 8; ++k) sums[k] += term(i + k);
  }
  for (int64_t k = 0; i < count; ++i, ++k) sums[k] += term(i);
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

inline float inverse_rms(const float* x, int64_t count, double eps) {
  const float sum = sum_of(count, [x](int64_t i) { return x[i] * x[i]; });
  return 1.0f / std::sqrt(sum / static_cast<float>(count) + static_cast<float>(eps));
}

// Whether the loops of this folder serve this tensor.
inline bool on_cpu_in_float(const at::Tensor& x) {
  return x.device().is_cpu() && x.scalar_type() == at::kFloat;
}

inline bool needs_graph(std::initializer_list<at::Tensor> tensors) {
  if (!at::GradMode::is_enabled()) return false;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.requires_grad()) return true;
  }
  return false;
}

}  // namespace elf::nn
