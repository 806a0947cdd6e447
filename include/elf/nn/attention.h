// Multi-head self-attention with normed queries and keys and rotary positions:
//   softmax(rotate(norm(q)) rotate(norm(k))^T / sqrt(d)) v, then the output projection.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "elf/nn/linear.h"
#include "elf/nn/rope.h"

namespace elf::nn {

struct Heads {
  at::Tensor q, k, v;  // [B, N, S, d]; q and k normed and rotated
};

// qkv [B, S, 3 H], laid out as (3, N, d); q_norm, k_norm [d]. One pass on the CPU in float32.
Heads make_heads(const at::Tensor& qkv, const at::Tensor& q_norm, const at::Tensor& k_norm, int64_t num_heads,
                 const RopeTable& rope, int64_t prefix);

// The same from plain ATen operations, any device and dtype: used elsewhere, and the reference of the tests.
Heads make_heads_plain(const at::Tensor& qkv, const at::Tensor& q_norm, const at::Tensor& k_norm,
                       int64_t num_heads, const RopeTable& rope, int64_t prefix);

struct Attention {
  Linear qkv;                 // H -> 3 H
  at::Tensor q_norm, k_norm;  // [d]
  Linear proj;                // H -> H
  int64_t num_heads = 1;

  // x [B, S, H] -> [B, S, H]. key_mask [B, S] bool, true = may be attended to; undefined: every key.
  at::Tensor operator()(const at::Tensor& x, const RopeTable& rope, int64_t prefix,
                        const at::Tensor& key_mask) const;
};

}  // namespace elf::nn
