#include "elf/nn/attention.h"

#include <ATen/ATen.h>

#include <optional>

#include "short_attention.h"

namespace elf::nn {

at::Tensor Attention::operator()(const at::Tensor& x, const RopeTable& rope, int64_t prefix,
                                 const at::Tensor& key_mask) const {
  const Heads heads = make_heads(qkv(x), q_norm, k_norm, num_heads, rope, prefix);
  if (!key_mask.defined() && serves_short_attention(heads.q))
    return proj(short_attention(heads.q, heads.k, heads.v));
  std::optional<at::Tensor> mask;
  if (key_mask.defined()) mask = key_mask.unsqueeze(1).unsqueeze(1);  // [B, 1, 1, S]
  const at::Tensor mixed = at::scaled_dot_product_attention(heads.q, heads.k, heads.v, mask);
  return proj(mixed.transpose(1, 2).flatten(2));
}

}  // namespace elf::nn
