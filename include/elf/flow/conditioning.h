// Condition positions: known latents that noise and predictions must not touch. The one place where they are
// put back or taken away.
#pragma once

#include <ATen/core/Tensor.h>

namespace elf {

// `value` with `clean` at the condition positions.  value, clean [B, L, D]; cond_mask [B, L] bool; undefined
// mask: `value` itself.
at::Tensor pin_condition(const at::Tensor& value, const at::Tensor& clean, const at::Tensor& cond_mask);

// `value` with zeros at the condition positions: the input without its condition.
at::Tensor zero_condition(const at::Tensor& value, const at::Tensor& cond_mask);

}  // namespace elf
