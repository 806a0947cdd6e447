#include "elf/model/gpt2.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <limits>

#include "elf/base/error.h"

namespace elf {
namespace {

constexpr int64_t kLogitBytes = int64_t{64} << 20;

void check_ids(const at::Tensor& ids, const Gpt2Config& c) {
  if (ids.dim() != 2 || ids.scalar_type() != at::kLong)
    usage_error("GPT-2: ids must be [B, L] int64; found ", ids.sizes(), " ", ids.scalar_type());
  if (ids.size(1) > c.positions)
    usage_error("GPT-2: ", ids.size(1), " tokens, but the model has ", c.positions, " positions");
  if (!ids.is_cpu() || ids.numel() == 0) return;
  const int64_t low = ids.min().item<int64_t>(), high = ids.max().item<int64_t>();
  if (low < 0 || high >= c.vocab_size)
    usage_error("GPT-2: id ", low < 0 ? low : high, " is outside its vocabulary of ", c.vocab_size);
}

// [B, 1, L, L] of a key mask [B, L]: a query sees the keys before it that are marked, and always itself, so
// that no row is empty.
at::Tensor causal_mask(const at::Tensor& key_mask) {
  const int64_t length = key_mask.size(1);
  const at::Tensor square = at::ones({length, length}, key_mask.options().dtype(at::kBool));
  const at::Tensor seen = key_mask.to(at::kBool).view({-1, 1, 1, length}).logical_and(square.tril());
  return seen.logical_or(at::eye(length, square.options()));
}

}  // namespace

at::Tensor Gpt2::Map::operator()(const at::Tensor& x) const {
  return at::linear(x, weight, bias);
}

at::Tensor Gpt2::norm(const at::Tensor& x, const Norm& norm) const {
  return at::layer_norm(x, {config_.width}, norm.weight, norm.bias, config_.eps);
}

at::Tensor Gpt2::attend(const Block& block, int64_t layer, const at::Tensor& x,
                        const at::Tensor& mask) const {
  const int64_t batch = x.size(0), length = x.size(1), head = config_.width / config_.heads;
  const std::vector<at::Tensor> parts =
      block.qkv(x).view({batch, length, 3, config_.heads, head}).permute({2, 0, 3, 1, 4}).unbind(0);
  double scale = config_.scale_by_head_width ? 1.0 / std::sqrt(static_cast<double>(head)) : 1.0;
  if (config_.scale_by_layer) scale /= static_cast<double>(layer + 1);
  const at::Tensor mixed =
      mask.defined() ? at::scaled_dot_product_attention(parts[0], parts[1], parts[2], mask, 0.0, false, scale)
                     : at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0,
                                                        /*is_causal=*/true, scale);
  return block.proj(mixed.transpose(1, 2).reshape({batch, length, config_.width}));
}

at::Tensor Gpt2::forward(const at::Tensor& ids, const at::Tensor& key_mask,
                         std::vector<at::Tensor>* hidden) const {
  const at::NoGradGuard no_gradients;
  check_ids(ids, config_);
  const at::Tensor mask = key_mask.defined() ? causal_mask(key_mask.to(device())) : at::Tensor();
  at::Tensor x = at::embedding(token_table_, ids.to(device())) + position_table_.narrow(0, 0, ids.size(1));
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    if (hidden) hidden->push_back(x);
    x = x + attend(block, static_cast<int64_t>(i), norm(x, block.norm1), mask);
    at::Tensor inner = block.up(norm(x, block.norm2));
    inner = at::gelu(inner, config_.tanh_gelu ? "tanh" : "none");
    x = x + block.down(inner);
  }
  return norm(x, final_norm_);
}

at::Tensor Gpt2::logits(const at::Tensor& features) const {
  const at::NoGradGuard no_gradients;
  return at::linear(features, token_table_);
}

at::Tensor Gpt2::nll(const at::Tensor& features, const at::Tensor& targets) const {
  const at::NoGradGuard no_gradients;
  const int64_t count = features.size(0);
  const int64_t slice = std::max<int64_t>(1, kLogitBytes / (config_.vocab_size * int64_t{sizeof(float)}));
  at::Tensor result = at::empty({count}, features.options().dtype(at::kFloat));
  for (int64_t first = 0; first < count; first += slice) {
    const int64_t size = std::min(slice, count - first);
    const at::Tensor scores = logits(features.narrow(0, first, size)).to(at::kFloat);
    const at::Tensor chosen = scores.gather(1, targets.narrow(0, first, size).view({size, 1})).view({size});
    result.narrow(0, first, size).copy_(at::logsumexp(scores, 1) - chosen);
  }
  return result;
}

}  // namespace elf
