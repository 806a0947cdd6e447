// Small pieces that the CPU loops of this folder share.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "elf/base/sanitizers.h"

namespace elf::nn {

// Rows of one piece of a parallel loop: enough work to pay for waking a thread. It depends on the width only,
// not on the machine, because it fixes the order of sums over rows.
inline int64_t rows_per_piece(int64_t width) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, width));
}

// A function that is compiled for several instruction sets; the best that the machine has is taken when the
// program starts. Products and sums may be fused on some and not on others: numbers are bitwise reproducible
// on one kind of machine, like those of the matrix products.
// The choice is made before a sanitizer is set up, so that there is one version under sanitizers.
#if defined(__x86_64__) && !defined(ELF_SANITIZED)
#define ELF_VECTOR_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define ELF_VECTOR_CLONES
#endif
#if defined(__clang__)  // before a loop of few rounds: no unrolling, whose leftover would run one by one
#define ELF_SHORT_LOOP _Pragma("clang loop interleave(disable)")
#else
#define ELF_SHORT_LOOP
#endif
#define ELF_INLINE inline __attribute__((always_inline))

// Sum of term(0) ... term(count - 1) in sixteen running sums: the compiler may keep them in vector registers,
// which strict float addition in one running sum forbids.
template <class Term>
ELF_INLINE float sum_of(int64_t count, Term term) {
  float sums[16] = {};
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    for (int64_t k = 0; k < 16; ++k) sums[k] += term(i + k);
  }
  for (int64_t k = 0; i < count; ++i, ++k) sums[k] += term(i);
  for (int64_t half = 8; half > 0; half /= 2) {
    for (int64_t k = 0; k < half; ++k) sums[k] += sums[k + half];
  }
  return sums[0];
}

// e^x with a relative error below 2e-7; x is held within [-87, 88]. Unlike std::exp it can run in vector
// registers: x = n ln 2 + r, a polynomial in r, and n put into the exponent bits.
ELF_INLINE float fast_exp(float x) {
  constexpr float kLog2E = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: adding it leaves no room for a fraction
  x = std::min(std::max(x, -87.0f), 88.0f);
  const float rounded = x * kLog2E + kRounder, n = rounded - kRounder;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // The last bits of `rounded` are n as an integer. Converting n would be undefined where x is no number; so
  // p says it.
  const uint32_t exponent = std::bit_cast<uint32_t>(rounded) - std::bit_cast<uint32_t>(kRounder) + 127u;
  return p * std::bit_cast<float>(exponent << 23);
}

ELF_INLINE float inverse_rms(const float* x, int64_t count, double eps) {
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
