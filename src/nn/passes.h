// The loops of this folder without their place in a graph: one pass over memory each; CPU, float32,
// contiguous. Their callers are the layers of the same names and the fused halves of a block.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "elf/nn/rope.h"

namespace elf::nn {

struct NormPass {
  at::Tensor y, inverse;  // as x; [rows] inverse root mean square of each row
};
NormPass rms_norm_forward(const at::Tensor& x, const at::Tensor& weight, double eps);

struct NormGrads {
  at::Tensor x, weight;
};
// `plus`, as x, is added to the gradient of x (that of the residual stream beside the norm); undefined:
// nothing.
NormGrads rms_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& inverse, const at::Tensor& plus = {});

struct HeadsPass {
  at::Tensor q, k, v;  // [B, S, N, d]; v a view into qkv unless copied
  at::Tensor inverse;  // [B S, 2, N] inverse root mean squares
};
// `bias` [3 H], when defined, is added to qkv in place, on the way: a product that need not add to what is
// there is faster.
HeadsPass heads_forward(const at::Tensor& qkv, const at::Tensor& q_norm, const at::Tensor& k_norm,
                        int64_t num_heads, const RopeTable& rope, int64_t prefix, bool copy_v,
                        const at::Tensor& bias = {});

struct HeadGrads {
  at::Tensor qkv, q_norm, k_norm;
};
// grad_q, grad_k, grad_v [B, S, N, d] contiguous.
HeadGrads heads_backward(const at::Tensor& grad_q, const at::Tensor& grad_k, const at::Tensor& grad_v,
                         const at::Tensor& qkv, const at::Tensor& q_norm, const at::Tensor& k_norm,
                         const at::Tensor& inverse, int64_t num_heads, const RopeTable& rope, int64_t prefix);

// ab [..., 2 I] -> [..., I], and back. `bias` [2 I], when defined, is added to ab in place, on the way.
at::Tensor gated_silu_forward(const at::Tensor& ab, const at::Tensor& bias = {});
at::Tensor gated_silu_backward(const at::Tensor& grad, const at::Tensor& ab);

}  // namespace elf::nn
