// y = x W^T + b.
#pragma once

#include <ATen/core/Tensor.h>

namespace elf::nn {

struct Linear {
  at::Tensor weight;  // [out, in]
  at::Tensor bias;    // [out]; undefined: none

  // [..., in] -> [..., out]
  at::Tensor operator()(const at::Tensor& x) const;
};

}  // namespace elf::nn
