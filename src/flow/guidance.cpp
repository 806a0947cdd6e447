#include "elf/flow/guidance.h"

#include <ATen/ATen.h>

#include "elf/flow/interpolant.h"

namespace elf {

at::Tensor guided_target(const at::Tensor& v, const at::Tensor& v_c, const at::Tensor& v_u,
                         const at::Tensor& w) {
  return v + (1.0 - broadcast_rows(w, v).reciprocal()) * (v_c - v_u);
}

at::Tensor guide(const at::Tensor& unconditional, const at::Tensor& conditional, double scale) {
  return unconditional + scale * (conditional - unconditional);
}

}  // namespace elf
