#include "elf/flow/conditioning.h"

#include <ATen/ATen.h>

namespace elf {

at::Tensor pin_condition(const at::Tensor& value, const at::Tensor& clean, const at::Tensor& cond_mask) {
  return cond_mask.defined() ? at::where(cond_mask.unsqueeze(-1), clean, value) : value;
}

at::Tensor zero_condition(const at::Tensor& value, const at::Tensor& cond_mask) {
  return cond_mask.defined() ? value.masked_fill(cond_mask.unsqueeze(-1), 0.0) : value;
}

}  // namespace elf
