// Who may see whom inside the text encoder (docs/ALGORITHM.md section 1).
#pragma once

#include <ATen/core/Tensor.h>

namespace elf {

// The encoder's attention mask [B, L, L] bool; entry (i, j) true = position i sees position j:
//   (cond_i and cond_j) or (not cond_i and valid_j)
// Condition positions see the condition only, all others every valid position. Where label_drop is set,
// positions outside the condition do not see the condition either, so that the target's latents carry nothing
// of it; padding rows of such an example may then see nothing at all.
//   valid       [B, L] bool: condition or target, not padding
//   cond        [B, L] bool: condition
//   label_drop  [B] bool, or undefined: no example drops its condition
// Pure; any device. Throws Error (usage) when the shapes do not fit.
at::Tensor encoder_mask(const at::Tensor& valid, const at::Tensor& cond, const at::Tensor& label_drop = {});

}  // namespace elf
