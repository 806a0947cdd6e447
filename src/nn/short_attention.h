// Attention of short sequences on the CPU: ATen's fused kernel spends most of its time on the way into tiny
// matrix products there.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace elf::nn {

// Whether sequences of this length and heads of this width are of the kind that this file is for: at most 48
// tokens, a multiple of 16.
bool is_short(int64_t length, int64_t head_dim);

// Whether q [B, N, S, d] is of the kind that short_attention is for: CPU, float32, is_short.
bool serves_short_attention(const at::Tensor& q);

// softmax(q k^T / sqrt(d)) v, heads side by side: q, k, v [B, N, S, d] (best as views of [B, S, N, d]) -> [B,
// S, N d]. Differentiable once.
at::Tensor short_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

// The passes themselves: q, k, v [B, S, N, d] contiguous -> out [B, S, N, d] and the weights [B N, S, S],
// which the way back needs.
std::pair<at::Tensor, at::Tensor> short_attention_forward(const at::Tensor& q, const at::Tensor& k,
                                                          const at::Tensor& v);
// Gradients of q, k and v.
std::vector<at::Tensor> short_attention_backward(const at::Tensor& grad, const at::Tensor& q,
                                                 const at::Tensor& k, const at::Tensor& v,
                                                 const at::Tensor& weights);

}  // namespace elf::nn
