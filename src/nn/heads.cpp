// Queries, keys and values of attention from one projection: norm over the head width, rotary positions; one
// pass over memory.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "elf/nn/attention.h"
#include "elf/nn/rms_norm.h"
#include "elf/tensor/parallel.h"
#include "kernels.h"
#include "passes.h"

namespace elf::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Sizes and angles; tensors are laid out [B, S, 3, N, d] (qkv) and [B, S, N, d] (q, k, v).
struct Layout {
  int64_t tokens, sequence, heads, dim, prefix;
  const float *cos, *sin;

  Layout(const at::Tensor& qkv, int64_t num_heads, const RopeTable& rope, int64_t first_data_token)
      : tokens(qkv.size(0) * qkv.size(1)),
        sequence(qkv.size(1)),
        heads(num_heads),
        dim(qkv.size(2) / (3 * num_heads)),
        prefix(first_data_token),
        cos(rope.cos.const_data_ptr<float>()),
        sin(rope.sin.const_data_ptr<float>()) {}

  int64_t width() const { return heads * dim; }
  int64_t piece() const { return rows_per_piece(3 * width()); }
  std::vector<int64_t> head_sizes() const { return {tokens / sequence, sequence, heads, dim}; }
  // Where the angles of a token start in the tables; -1: the token is not rotated.
  int64_t angles(int64_t token) const {
    const int64_t position = token % sequence - prefix;
    return position < 0 ? -1 : position * (dim / 2);
  }
};

// The heads of one token: x, out [heads, dim]; inverse [heads]; cos, sin [dim / 2] or null.
ELF_VECTOR_CLONES void norm_and_rotate(const float* __restrict x, const float* __restrict w,
                                       const float* __restrict cos, const float* __restrict sin,
                                       int64_t heads, int64_t dim, float* __restrict out,
                                       float* __restrict inverse) {
  for (int64_t n = 0; n < heads; ++n, x += dim, out += dim) {
    const float r = inverse[n] = inverse_rms(x, dim, kRmsNormEps);
    if (cos == nullptr) {
      for (int64_t i = 0; i < dim; ++i) out[i] = x[i] * r * w[i];
      continue;
    }
    for (int64_t i = 0; i < dim / 2; ++i) {
      const float even = x[2 * i] * r * w[2 * i], odd = x[2 * i + 1] * r * w[2 * i + 1];
      out[2 * i] = even * cos[i] - odd * sin[i];
      out[2 * i + 1] = even * sin[i] + odd * cos[i];
    }
  }
}

// x += y
ELF_VECTOR_CLONES void add_to(float* __restrict x, const float* __restrict y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] += y[i];
}

// The gradient turned back (a rotation's transpose), then through the norm (see rms_norm.cpp); dw [dim] is
// added to, g [dim] is scratch.
ELF_VECTOR_CLONES void norm_and_rotate_backward(const float* __restrict grad, const float* __restrict x,
                                                const float* __restrict w, const float* __restrict cos,
                                                const float* __restrict sin, const float* __restrict inverse,
                                                int64_t heads, int64_t dim, float* __restrict g,
                                                float* __restrict dx, float* __restrict dw) {
  for (int64_t n = 0; n < heads; ++n, grad += dim, x += dim, dx += dim) {
    if (cos == nullptr) {
      for (int64_t i = 0; i < dim; ++i) g[i] = grad[i];
    } else {
      for (int64_t i = 0; i < dim / 2; ++i) {
        g[2 * i] = grad[2 * i] * cos[i] + grad[2 * i + 1] * sin[i];
        g[2 * i + 1] = grad[2 * i + 1] * cos[i] - grad[2 * i] * sin[i];
      }
    }
    const float r = inverse[n];
    const float dot = sum_of(dim, [=](int64_t i) { return g[i] * w[i] * x[i]; });
    const float scale = dot * r * r / static_cast<float>(dim);
    for (int64_t i = 0; i < dim; ++i) {
      dx[i] = r * (g[i] * w[i] - x[i] * scale);
      dw[i] += g[i] * x[i] * r;
    }
  }
}

}  // namespace

HeadsPass heads_forward(const at::Tensor& qkv, const at::Tensor& q_norm, const at::Tensor& k_norm,
                        int64_t num_heads, const RopeTable& rope, int64_t prefix, bool copy_v,
                        const at::Tensor& bias) {
  const Layout layout(qkv, num_heads, rope, prefix);
  const std::vector<int64_t> sizes = layout.head_sizes();
  const auto options = qkv.options().requires_grad(false);
  const at::Tensor v =
      copy_v ? at::empty(sizes, options)
             : qkv.narrow(-1, 2 * layout.width(), layout.width()).unflatten(-1, {layout.heads, layout.dim});
  HeadsPass result{at::empty(sizes, options), at::empty(sizes, options), v,
                   at::empty({layout.tokens, 2, layout.heads}, options)};
  const float* in = qkv.const_data_ptr<float>();
  float* changed = bias.defined() ? qkv.data_ptr<float>() : nullptr;
  const float* biases = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
  const float* weights[2] = {q_norm.const_data_ptr<float>(), k_norm.const_data_ptr<float>()};
  float* outs[2] = {result.q.data_ptr<float>(), result.k.data_ptr<float>()};
  float* values = copy_v ? v.data_ptr<float>() : nullptr;
  float* inverse = result.inverse.data_ptr<float>();
  const int64_t width = layout.width();
  parallel_for(layout.tokens, layout.piece(), [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const float* row = in + token * 3 * width;
      if (changed) add_to(changed + token * 3 * width, biases, 3 * width);
      const int64_t angles = layout.angles(token);
      const float *cos = angles < 0 ? nullptr : layout.cos + angles,
                  *sin = angles < 0 ? nullptr : layout.sin + angles;
      for (int part = 0; part < 2; ++part) {
        norm_and_rotate(row + part * width, weights[part], cos, sin, layout.heads, layout.dim,
                        outs[part] + token * width, inverse + (token * 2 + part) * layout.heads);
      }
      if (copy_v) std::copy_n(row + 2 * width, width, values + token * width);
    }
  });
  return result;
}

HeadGrads heads_backward(const at::Tensor& grad_q, const at::Tensor& grad_k, const at::Tensor& grad_v,
                         const at::Tensor& qkv, const at::Tensor& q_norm, const at::Tensor& k_norm,
                         const at::Tensor& inverses, int64_t num_heads, const RopeTable& rope,
                         int64_t prefix) {
  const Layout layout(qkv, num_heads, rope, prefix);
  const int64_t piece = layout.piece(), pieces = (layout.tokens + piece - 1) / piece;
  const int64_t width = layout.width(), dim = layout.dim;
  at::Tensor grad_qkv = at::empty_like(qkv), grad_norm = at::zeros({pieces, 2, dim}, qkv.options());
  const float* g[3] = {grad_q.const_data_ptr<float>(), grad_k.const_data_ptr<float>(),
                       grad_v.const_data_ptr<float>()};
  const float* in = qkv.const_data_ptr<float>();
  const float* weights[2] = {q_norm.const_data_ptr<float>(), k_norm.const_data_ptr<float>()};
  const float* inverse = inverses.const_data_ptr<float>();
  float* out = grad_qkv.data_ptr<float>();
  float* dw = grad_norm.data_ptr<float>();
  parallel_for(layout.tokens, piece, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(static_cast<size_t>(dim));
    float* piece_dw = dw + begin / piece * 2 * dim;
    for (int64_t token = begin; token < end; ++token) {
      const int64_t angles = layout.angles(token);
      const float *cos = angles < 0 ? nullptr : layout.cos + angles,
                  *sin = angles < 0 ? nullptr : layout.sin + angles;
      for (int part = 0; part < 2; ++part) {
        const int64_t place = (token * 3 + part) * width;
        norm_and_rotate_backward(g[part] + token * width, in + place, weights[part], cos, sin,
                                 inverse + (token * 2 + part) * layout.heads, layout.heads, dim,
                                 scratch.data(), out + place, piece_dw + part * dim);
      }
      std::copy_n(g[2] + token * width, width, out + (token * 3 + 2) * width);
    }
  });
  const at::Tensor norm_sum = grad_norm.sum(0);
  return {grad_qkv, norm_sum.select(0, 0), norm_sum.select(0, 1)};
}

namespace {

struct MakeHeads : public torch::autograd::Function<MakeHeads> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& qkv, const at::Tensor& q_norm,
                               const at::Tensor& k_norm, int64_t num_heads, const at::Tensor& cos,
                               const at::Tensor& sin, int64_t prefix) {
    const HeadsPass heads =
        heads_forward(qkv, q_norm, k_norm, num_heads, {cos, sin}, prefix, /*copy_v=*/true);
    ctx->save_for_backward({qkv, q_norm, k_norm, heads.inverse, cos, sin});
    ctx->saved_data["num_heads"] = num_heads;
    ctx->saved_data["prefix"] = prefix;
    return {heads.q, heads.k, heads.v};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const variable_list saved = ctx->get_saved_variables();
    for (at::Tensor& grad : grads) grad = grad.contiguous();
    const HeadGrads result = heads_backward(grads[0], grads[1], grads[2], saved[0], saved[1], saved[2],
                                            saved[3], ctx->saved_data["num_heads"].toInt(),
                                            {saved[4], saved[5]}, ctx->saved_data["prefix"].toInt());
    const at::Tensor none;
    return {result.qkv, result.q_norm, result.k_norm, none, none, none, none};
  }
};

}  // namespace

Heads make_heads(const at::Tensor& qkv, const at::Tensor& q_norm, const at::Tensor& k_norm, int64_t num_heads,
                 const RopeTable& rope, int64_t prefix) {
  if (!on_cpu_in_float(qkv) || !on_cpu_in_float(q_norm)) {
    return make_heads_plain(qkv, q_norm, k_norm, num_heads, rope, prefix);
  }
  const auto heads_first = [](const at::Tensor& x) { return x.transpose(1, 2); };
  if (needs_graph({qkv, q_norm, k_norm})) {
    const variable_list out =
        MakeHeads::apply(qkv.contiguous(), q_norm, k_norm, num_heads, rope.cos, rope.sin, prefix);
    return {heads_first(out[0]), heads_first(out[1]), heads_first(out[2])};
  }
  const at::Tensor whole = qkv.contiguous();
  const HeadsPass out = heads_forward(whole, q_norm, k_norm, num_heads, rope, prefix, /*copy_v=*/false);
  return {heads_first(out.q), heads_first(out.k), heads_first(out.v)};
}

Heads make_heads_plain(const at::Tensor& qkv, const at::Tensor& q_norm, const at::Tensor& k_norm,
                       int64_t num_heads, const RopeTable& rope, int64_t prefix) {
  const at::Tensor parts = qkv.unflatten(-1, {3, num_heads, -1}).permute({2, 0, 3, 1, 4});  // [3, B, N, S, d]
  return {rotate(rms_norm_plain(parts.select(0, 0), q_norm), rope, prefix),
          rotate(rms_norm_plain(parts.select(0, 1), k_norm), rope, prefix), parts.select(0, 2)};
}

}  // namespace elf::nn
