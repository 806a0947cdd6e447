#include "short_attention.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "elf/tensor/parallel.h"
#include "kernels.h"

namespace elf::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kLongest = 48;  // beyond it ATen's kernel is as fast

// Sixteen numbers in as few registers as the machine needs for them.
constexpr int64_t kWide = 16;
typedef float Wide __attribute__((vector_size(kWide * sizeof(float))));

// sum += factor * x[0 ... 15]
ELF_INLINE void add_scaled(Wide& sum, float factor, const float* x) {
  Wide loaded;
  std::memcpy(&loaded, x, sizeof(Wide));  // x need not be aligned
  sum += factor * loaded;
}

struct Sizes {
  int64_t batch, length, heads, dim;
  int64_t stride() const { return heads * dim; }  // from one token of a head to the next
  int64_t padded() const {
    return (length + kWide - 1) / kWide * kWide;
  }  // a row of scores, in whole registers
  int64_t piece() const {
    return std::max<int64_t>(1, (int64_t{1} << 18) / (length * length * dim));
  }  // heads
  // Columns of keys or values, a row of scores, and the gradient of all scores.
  size_t scratch() const { return static_cast<size_t>((dim + 1 + length) * padded()); }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(dim)); }
  // Where head `index` of all batch * heads starts.
  int64_t start(int64_t index) const { return index / heads * length * stride() + index % heads * dim; }
};

// columns [dim, padded]: the rows of one head (keys or values) as columns, zeros behind the last.
ELF_INLINE void transpose(const float* __restrict rows, const Sizes& s, float* __restrict columns) {
  const int64_t padded = s.padded();
  for (int64_t c = 0; c < s.dim; ++c) {
    for (int64_t j = 0; j < s.length; ++j) columns[c * padded + j] = rows[j * s.stride() + c];
    for (int64_t j = s.length; j < padded; ++j) columns[c * padded + j] = 0.0f;
  }
}

// out [width] = sum over i < count of factors[i * step] * rows[i * stride + 0 ... width - 1]; width a
// multiple of kWide.
ELF_INLINE void weighted_sum(const float* factors, int64_t step, const float* rows, int64_t stride,
                             int64_t count, int64_t width, float* out) {
  int64_t c = 0;
  for (; c + 2 * kWide <= width; c += 2 * kWide) {
    Wide first = {}, second = {};
    for (int64_t i = 0; i < count; ++i) {
      add_scaled(first, factors[i * step], rows + i * stride + c);
      add_scaled(second, factors[i * step], rows + i * stride + c + kWide);
    }
    std::memcpy(out + c, &first, sizeof(Wide));
    std::memcpy(out + c + kWide, &second, sizeof(Wide));
  }
  for (; c < width; c += kWide) {
    Wide sum = {};
    for (int64_t i = 0; i < count; ++i) add_scaled(sum, factors[i * step], rows + i * stride + c);
    std::memcpy(out + c, &sum, sizeof(Wide));
  }
}

// One head. p [length, length]: the attention weights.
ELF_VECTOR_CLONES void attend(const float* q, const float* k, const float* v, const Sizes& s, float* p,
                              float* out, float* scratch) {
  const int64_t padded = s.padded(), stride = s.stride();
  const float scale = s.scale();
  float* scores = scratch + s.dim * padded;
  transpose(k, s, scratch);
  for (int64_t i = 0; i < s.length; ++i, p += s.length) {
    weighted_sum(q + i * stride, 1, scratch, padded, s.dim, padded, scores);
    const float most = *std::max_element(scores, scores + s.length) * scale;
    for (int64_t j = 0; j < padded; ++j) scores[j] = fast_exp(scores[j] * scale - most);
    const float inverse = 1.0f / sum_of(s.length, [=](int64_t j) { return scores[j]; });
    for (int64_t j = 0; j < s.length; ++j) p[j] = scores[j] * inverse;
    weighted_sum(p, 1, v, stride, s.length, s.dim, out + i * stride);
  }
}

// One head, with dP = dO V^T and dS = P (dP - rowsum(dP P)) / sqrt(d): dQ = dS K, dK = dS^T Q, dV = P^T dO.
ELF_VECTOR_CLONES void attend_backward(const float* grad, const float* q, const float* k, const float* v,
                                       const float* p, const Sizes& s, float* dq, float* dk, float* dv,
                                       float* scratch) {
  const int64_t padded = s.padded(), stride = s.stride(), length = s.length;
  const float scale = s.scale();
  float *dp = scratch + s.dim * padded, *ds = dp + padded;  // ds [length, length]
  transpose(v, s, scratch);
  for (int64_t i = 0; i < length; ++i) {
    const float* p_row = p + i * length;
    weighted_sum(grad + i * stride, 1, scratch, padded, s.dim, padded, dp);
    const float dot = sum_of(length, [=](int64_t j) { return dp[j] * p_row[j]; });
    for (int64_t j = 0; j < length; ++j) ds[i * length + j] = p_row[j] * (dp[j] - dot) * scale;
    weighted_sum(ds + i * length, 1, k, stride, length, s.dim, dq + i * stride);
  }
  for (int64_t j = 0; j < length; ++j) {
    weighted_sum(ds + j, length, q, stride, length, s.dim, dk + j * stride);
    weighted_sum(p + j, length, grad, stride, length, s.dim, dv + j * stride);
  }
}

Sizes sizes_of(const at::Tensor& tokens_first) {
  return {tokens_first.size(0), tokens_first.size(1), tokens_first.size(2), tokens_first.size(3)};
}

}  // namespace

std::pair<at::Tensor, at::Tensor> short_attention_forward(const at::Tensor& q, const at::Tensor& k,
                                                          const at::Tensor& v) {
  const Sizes s = sizes_of(q);
  const auto options = q.options().requires_grad(false);
  at::Tensor out = at::empty(q.sizes(), options),
             weights = at::empty({s.batch * s.heads, s.length, s.length}, options);
  const float *q_data = q.const_data_ptr<float>(), *k_data = k.const_data_ptr<float>(),
              *v_data = v.const_data_ptr<float>();
  float *out_data = out.data_ptr<float>(), *p_data = weights.data_ptr<float>();
  parallel_for(s.batch * s.heads, s.piece(), [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(s.scratch());
    for (int64_t h = begin; h < end; ++h) {
      const int64_t at = s.start(h);
      attend(q_data + at, k_data + at, v_data + at, s, p_data + h * s.length * s.length, out_data + at,
             scratch.data());
    }
  });
  return {out, weights};
}

std::vector<at::Tensor> short_attention_backward(const at::Tensor& grad, const at::Tensor& q,
                                                 const at::Tensor& k, const at::Tensor& v,
                                                 const at::Tensor& weights) {
  const variable_list saved{q, k, v, weights};
  const Sizes s = sizes_of(saved[0]);
  variable_list grads{at::empty_like(saved[0]), at::empty_like(saved[0]), at::empty_like(saved[0])};
  const float* in[4];
  for (size_t i = 0; i < 4; ++i) in[i] = saved[i].const_data_ptr<float>();
  const float* g = grad.const_data_ptr<float>();
  float* out[3];
  for (size_t i = 0; i < 3; ++i) out[i] = grads[i].data_ptr<float>();
  parallel_for(s.batch * s.heads, s.piece(), [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(s.scratch());
    for (int64_t h = begin; h < end; ++h) {
      const int64_t at = s.start(h);
      attend_backward(g + at, in[0] + at, in[1] + at, in[2] + at, in[3] + h * s.length * s.length, s,
                      out[0] + at, out[1] + at, out[2] + at, scratch.data());
    }
  });
  return grads;
}

namespace {

struct ShortAttention : public torch::autograd::Function<ShortAttention> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v) {
    auto [out, weights] = short_attention_forward(q, k, v);
    ctx->save_for_backward({q, k, v, weights});
    return out;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    return short_attention_backward(grads[0].contiguous(), saved[0], saved[1], saved[2], saved[3]);
  }
};

}  // namespace

bool is_short(int64_t length, int64_t head_dim) {
  return length > 0 && length <= kLongest && head_dim % kWide == 0;
}

bool serves_short_attention(const at::Tensor& q) {
  return on_cpu_in_float(q) && is_short(q.size(2), q.size(3));
}

at::Tensor short_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const auto tokens_first = [](const at::Tensor& x) { return x.transpose(1, 2).contiguous(); };
  const at::Tensor q_BSNd = tokens_first(q), k_BSNd = tokens_first(k), v_BSNd = tokens_first(v);
  const at::Tensor out = needs_graph({q_BSNd, k_BSNd, v_BSNd})
                             ? ShortAttention::apply(q_BSNd, k_BSNd, v_BSNd)
                             : short_attention_forward(q_BSNd, k_BSNd, v_BSNd).first;
  return out.flatten(2);
}

}  // namespace elf::nn
