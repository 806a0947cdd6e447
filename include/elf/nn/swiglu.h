// Gated feed-forward layer (Shazeer, 2020): w3(SiLU(a) * b), (a, b) = halves of w12(x).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "elf/nn/linear.h"

namespace elf::nn {

// ab [..., 2 I] -> SiLU(first half) * second half [..., I]. Keeps only its input for the backward pass.
// Differentiable once.
at::Tensor gated_silu(const at::Tensor& ab);

struct SwiGlu {
  Linear w12;  // H -> 2 I
  Linear w3;   // I -> H

  // x [..., H] -> [..., H]; `on_product` is applied to the gated product (dropout), when given.
  at::Tensor operator()(const at::Tensor& x,
                        const std::function<at::Tensor(const at::Tensor&)>& on_product = nullptr) const;
};

// I = int(int(H ratio) * 2 / 3)
int64_t swiglu_inner(int64_t hidden_size, double mlp_ratio);

}  // namespace elf::nn
