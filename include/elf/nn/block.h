// A pre-norm transformer block:  x += attn(norm1(x));  x += mlp(norm2(x)).
#pragma once

#include <ATen/core/Tensor.h>

#include "elf/nn/attention.h"
#include "elf/nn/swiglu.h"

namespace elf::nn {

struct Block {
  at::Tensor norm1, norm2;  // [H]
  Attention attn;
  SwiGlu mlp;
  Linear modulation = {};  // H -> 6 H: shifts, scales and gates of adaLN-Zero; undefined: none
};

// Whether the fused form below serves x [B, S, H]: CPU, float32.
bool serves_fused_block(const at::Tensor& x);

// The block, every key attended to, without dropout; x [B, S, H] -> [B, S, H]. Each half is one node of the
// graph: it keeps x, the projection to queries, keys and values, the mixed heads and the input of the gate,
// and makes everything else again on the way back (a twentieth of the arithmetic for two fifths of the
// memory). Differentiable once.
at::Tensor fused_block(const Block& block, const at::Tensor& x, const RopeTable& rope, int64_t prefix);

}  // namespace elf::nn
