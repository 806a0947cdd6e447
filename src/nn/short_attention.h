// Attention of short sequences on the CPU: ATen's fused kernel spends most of its time on the way into tiny
// matrix products there.
#pragma once

#include <ATen/core/Tensor.h>

namespace elf::nn {

// Whether q [B, N, S, d] is of the kind that short_attention is for: CPU, float32, S at most 48, d a multiple
// of 16.
bool serves_short_attention(const at::Tensor& q);

// softmax(q k^T / sqrt(d)) v, heads side by side: q, k, v [B, N, S, d] (best as views of [B, S, N, d]) -> [B,
// S, N d]. Differentiable once.
at::Tensor short_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

}  // namespace elf::nn
