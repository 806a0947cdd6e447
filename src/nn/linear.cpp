#include "elf/nn/linear.h"

#include <ATen/ATen.h>

namespace elf::nn {

at::Tensor Linear::operator()(const at::Tensor& x) const {
  return at::linear(x, weight, bias);
}

}  // namespace elf::nn
