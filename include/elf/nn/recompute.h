// Activation checkpointing (Chen et al., 2016): a part of the network keeps only its input and runs again in
// the backward pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace elf::nn {

// part(x), of which only x is kept. `weights`: every tensor with gradients that `part` reads. `part` must
// give the same numbers when it runs again, so what is random in it must be keyed, not drawn; it must outlive
// the backward pass (captures are copied). Gradients equal those of part(x) bit for bit. Differentiable once.
at::Tensor recomputed(const std::function<at::Tensor(const at::Tensor& x)>& part, const at::Tensor& x,
                      const std::vector<at::Tensor>& weights);

}  // namespace elf::nn
