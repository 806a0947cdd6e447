// Guidance: by self-condition at training time, where the target itself moves, and by condition when
// sampling.
#pragma once

#include <ATen/core/Tensor.h>

namespace elf {

// Training-time target: v + (1 - 1/w) (v_c - v_u).  v, v_c (with self-condition), v_u (without) [B, L, D] or
// [n, D]; w [B] or [n]. A network trained on it answers one forward at scale w with what plain guidance needs
// two for: its fixed point is v_u + w (v - v_u). w = 1: v.
at::Tensor guided_target(const at::Tensor& v, const at::Tensor& v_c, const at::Tensor& v_u,
                         const at::Tensor& w);

// Two predictions combined when sampling: u + scale (c - u).
at::Tensor guide(const at::Tensor& unconditional, const at::Tensor& conditional, double scale);

}  // namespace elf
