#include "elf/data/masks.h"

#include <ATen/ATen.h>

#include "elf/base/error.h"

namespace elf {

at::Tensor encoder_mask(const at::Tensor& valid, const at::Tensor& cond, const at::Tensor& label_drop) {
  if (valid.dim() != 2 || cond.sizes() != valid.sizes()) {
    usage_error("encoder_mask: valid and cond must both be [B, L]; found ", valid.sizes(), " and ",
                cond.sizes());
  }
  const at::Tensor valid_key = valid.to(at::kBool).unsqueeze(1);
  const at::Tensor cond_key = cond.to(at::kBool).unsqueeze(1);
  const at::Tensor cond_query = cond.to(at::kBool).unsqueeze(2);
  at::Tensor seen_by_target = valid_key;
  if (label_drop.defined()) {
    if (label_drop.dim() != 1 || label_drop.size(0) != valid.size(0)) {
      usage_error("encoder_mask: label_drop must be [B=", valid.size(0), "]; found ", label_drop.sizes());
    }
    seen_by_target = valid_key & ~(label_drop.to(at::kBool).view({-1, 1, 1}) & cond_key);
  }
  return at::where(cond_query, cond_key, seen_by_target);
}

}  // namespace elf
