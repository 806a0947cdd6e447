#include "symmetric_product.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "elf/base/sanitizers.h"
#include "elf/tensor/parallel.h"

#if defined(__x86_64__) && !defined(ELF_SANITIZED)
#define ELF_HAS_TILES 1
#endif

namespace elf {
#ifdef ELF_HAS_TILES
namespace {

// A tile of the result is kRows x kColumns and stays in vector registers for kDepth steps; its factors are
// packed side by side beforehand: kRows numbers of the left and kColumns of the right one a step.
constexpr int64_t kRows = 12, kColumns = 32, kDepth = 256;

// The loop pays from this size on.
constexpr int64_t kLeast = 64;

typedef float Four __attribute__((vector_size(16)));

// to[j, i] = from[i, j] for a block of 4 x 4.
inline void transpose_block(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  Four r[4];
  for (int64_t i = 0; i < 4; ++i) std::memcpy(&r[i], from + i * from_stride, sizeof(Four));
  const Four a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5),
             b = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5),
             c = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7),
             d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  const Four columns[4] = {
      __builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7),
      __builtin_shufflevector(c, d, 0, 1, 4, 5), __builtin_shufflevector(c, d, 2, 3, 6, 7)};
  for (int64_t j = 0; j < 4; ++j) std::memcpy(to + j * to_stride, &columns[j], sizeof(Four));
}

// A matrix by its strides.
struct View {
  const float* data;
  int64_t row, column;
  explicit View(const at::Tensor& x)
      : data(x.const_data_ptr<float>()), row(x.stride(0)), column(x.stride(1)) {}
};

// Rows first ... first + width - 1 (those beyond `size` are zero) of columns k ... k + depth - 1 into [depth,
// width].
template <int64_t kWidth>
void pack(const View& x, int64_t first, int64_t size, int64_t k, int64_t depth, float* out) {
  const float* from = x.data + first * x.row + k * x.column;
  const int64_t count = std::min(kWidth, size - first);
  if (count < kWidth) std::fill_n(out, kWidth * depth, 0.0f);
  if (x.row == 1 && count == kWidth) {  // of a size that the compiler knows
    for (int64_t d = 0; d < depth; ++d)
      std::memcpy(out + d * kWidth, from + d * x.column, kWidth * sizeof(float));
    return;
  }
  const int64_t blocks = x.column == 1 ? count / 4 * 4 : 0, whole = depth / 4 * 4;
  for (int64_t i = 0; i < blocks; i += 4) {
    for (int64_t d = 0; d < whole; d += 4)
      transpose_block(from + i * x.row + d, x.row, out + d * kWidth + i, kWidth);
  }
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t d = i < blocks ? whole : 0; d < depth; ++d)
      out[d * kWidth + i] = from[i * x.row + d * x.column];
  }
}

// out [kRows, kColumns] = left^T right, added to what is there when `add`; left [depth, kRows] and right
// [depth, kColumns] packed.
template <class Vector>
inline __attribute__((always_inline)) void multiply_tile(const float* __restrict left,
                                                         const float* __restrict right, int64_t depth,
                                                         float* __restrict out, int64_t stride, bool add) {
  constexpr int64_t kVectors = kColumns * sizeof(float) / sizeof(Vector);
  Vector sum[kRows][kVectors] = {};
  for (int64_t k = 0; k < depth; ++k, left += kRows, right += kColumns) {
    Vector b[kVectors];
    std::memcpy(b, right, sizeof(b));
#pragma GCC unroll 16
    for (int64_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int64_t j = 0; j < kVectors; ++j) sum[i][j] += left[i] * b[j];
    }
  }
#pragma GCC unroll 16
  for (int64_t i = 0; i < kRows; ++i) {
    Vector row[kVectors] = {};
    if (add) std::memcpy(row, out + i * stride, sizeof(row));
#pragma GCC unroll 4
    for (int64_t j = 0; j < kVectors; ++j) row[j] += sum[i][j];
    std::memcpy(out + i * stride, row, sizeof(row));
  }
}

typedef float Sixteen __attribute__((vector_size(64)));

__attribute__((target("avx512f"))) void multiply_tile_avx512(const float* left, const float* right,
                                                             int64_t depth, float* out, int64_t stride,
                                                             bool add) {
  multiply_tile<Sixteen>(left, right, depth, out, stride, add);
}

bool has_avx512() {
  static const bool has = __builtin_cpu_supports("avx512f");
  return has;
}

// One column of tiles, on and below the diagonal. left: all of it, packed; right: its panel of these columns.
void multiply_column(const float* left, const float* right, int64_t depth, int64_t first, int64_t size,
                     float* out, bool add) {
  const int64_t columns = std::min(kColumns, size - first);
  for (int64_t row = first / kRows * kRows; row < size; row += kRows) {
    const int64_t rows = std::min(kRows, size - row);
    const float* panel = left + row * depth;
    if (rows == kRows && columns == kColumns) {
      multiply_tile_avx512(panel, right, depth, out + row * size + first, size, add);
      continue;
    }
    float edge[kRows * kColumns];
    multiply_tile_avx512(panel, right, depth, edge, kColumns, /*add=*/false);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        float& place = out[(row + i) * size + first + j];
        place = (add ? place : 0.0f) + edge[i * kColumns + j];
      }
    }
  }
}

// The sum of rows begin ... end - 1, on and below the diagonal. plus: [size, size] or null.
void combine(float* x, const float* plus, int64_t size, int64_t begin, int64_t end, const SymmetricSum& sum) {
  const auto product = static_cast<float>(sum.product), factor = static_cast<float>(sum.plus_factor);
  for (int64_t i = begin; i < end; ++i) {
    float* row = x + i * size;
    if (plus == nullptr) {
      for (int64_t j = 0; j <= i; ++j) row[j] *= product;
    } else {
      const float* other = plus + i * size;
      for (int64_t j = 0; j <= i; ++j) row[j] = product * row[j] + factor * other[j];
    }
    row[i] += static_cast<float>(sum.diagonal);
  }
}

// What lies above the diagonal from what lies below it, for rows begin ... end - 1 of the upper half's
// columns.
void mirror(float* x, int64_t size, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i += 4) {
    const int64_t rows = std::min<int64_t>(4, end - i);
    for (int64_t j = 0; j < i + rows; j += 4) {
      if (rows == 4 && j + 4 <= i) {
        transpose_block(x + i * size + j, size, x + j * size + i, size);
        continue;
      }
      for (int64_t a = i; a < i + rows; ++a) {
        for (int64_t b = j; b < std::min(a, j + 4); ++b) x[b * size + a] = x[a * size + b];
      }
    }
  }
}

}  // namespace

bool serves_symmetric_product(const at::Tensor& a) {
  return a.device().is_cpu() && a.scalar_type() == at::kFloat && a.dim() == 2 && a.size(0) >= kLeast &&
         has_avx512();
}

at::Tensor symmetric_product(const at::Tensor& a, const at::Tensor& b, const SymmetricSum& sum) {
  const int64_t size = a.size(0), depth = a.size(1);
  const int64_t left_panels = (size + kRows - 1) / kRows, right_panels = (size + kColumns - 1) / kColumns;
  const View left(a), right(b);
  const at::Tensor result = at::empty({size, size}, a.options());
  const at::Tensor packed =
      at::empty({(left_panels * kRows + right_panels * kColumns) * kDepth}, a.options());
  float *out = result.data_ptr<float>(), *left_packed = packed.data_ptr<float>(),
        *right_packed = left_packed + left_panels * kRows * kDepth;
  for (int64_t k = 0; k < depth; k += kDepth) {
    const int64_t some = std::min(kDepth, depth - k);
    parallel_for(left_panels, 16, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        pack<kRows>(left, p * kRows, size, k, some, left_packed + p * kRows * some);
    });
    parallel_for(right_panels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        float* panel = right_packed + p * kColumns * some;
        pack<kColumns>(right, p * kColumns, size, k, some, panel);
        multiply_column(left_packed, panel, some, p * kColumns, size, out, /*add=*/k > 0);
      }
    });
  }
  const at::Tensor other = sum.plus.defined() ? sum.plus.contiguous() : sum.plus;
  const float* plus = other.defined() ? other.const_data_ptr<float>() : nullptr;
  const bool changes = plus != nullptr || sum.product != 1 || sum.diagonal != 0;
  parallel_for((size + 63) / 64, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = p * 64, last = std::min(size, first + 64);
      if (changes) combine(out, plus, size, first, last, sum);
      mirror(out, size, first, last);
    }
  });
  return result;
}

#else

bool serves_symmetric_product(const at::Tensor&) {
  return false;
}

at::Tensor symmetric_product(const at::Tensor& a, const at::Tensor& b, const SymmetricSum&) {
  return at::mm(a, b.t());  // nobody asks: see above
}

#endif

}  // namespace elf
