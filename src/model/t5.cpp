#include "elf/model/t5.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "t5_weights.h"

namespace elf {
namespace {

// Added to a score that must not count. Any finite number that swallows every real score would do, and gives
// the same float32 result as the most negative one, which published code adds; this one also survives kernels
// that multiply it by log2(e).
constexpr double kHidden = -1e30;

at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return at::rms_norm(x, {x.size(-1)}, weight, eps);
}

// softmax(q k^T + bias) v: q [B, N, Lq, d], k and v [B, N, Lk, d], bias broadcast over [B, N, Lq, Lk].
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& bias) {
  const bool differentiate = at::GradMode::is_enabled() && (q.requires_grad() || bias.requires_grad());
  if (!differentiate) return at::scaled_dot_product_attention(q, k, v, bias, 0.0, false, /*scale=*/1.0);
  // The fused kernels give no gradient for the bias.
  return at::matmul(at::softmax(at::matmul(q, k.transpose(2, 3)) + bias, -1), v);
}

at::Tensor attention(const T5Attention& weights, const at::Tensor& x, const at::Tensor& memory,
                     const at::Tensor& bias, const T5Config& c) {
  const auto heads = [&](const at::Tensor& input, const at::Tensor& weight) {
    return at::linear(input, weight)
        .view({input.size(0), input.size(1), c.num_heads, c.d_kv})
        .transpose(1, 2);
  };
  const at::Tensor mixed =
      attend(heads(x, weights.q), heads(memory, weights.k), heads(memory, weights.v), bias);
  return at::linear(mixed.transpose(1, 2).reshape({x.size(0), x.size(1), c.num_heads * c.d_kv}), weights.o);
}

at::Tensor feed_forward(const T5Block& block, const at::Tensor& x) {
  at::Tensor inner = at::linear(x, block.wi);
  inner =
      block.wi_linear.defined() ? at::gelu(inner, "tanh") * at::linear(x, block.wi_linear) : at::relu(inner);
  return at::linear(inner, block.wo);
}

struct Memory {
  at::Tensor hidden;  // [B, L, D] the encoder's output; undefined in the encoder
  at::Tensor bias;    // [B, 1, 1, L]
};

at::Tensor run(const T5Stack& stack, const T5Config& c, at::Tensor x, const at::Tensor& bias,
               const Memory& memory, std::vector<at::Tensor>* hidden = nullptr) {
  for (const T5Block& block : stack.blocks) {
    if (hidden) hidden->push_back(x);
    const at::Tensor normed = norm(x, block.self_norm, c.eps);
    x = x + attention(block.self, normed, normed, bias, c);
    if (memory.hidden.defined()) {
      x = x + attention(block.cross, norm(x, block.cross_norm, c.eps), memory.hidden, memory.bias, c);
    }
    x = x + feed_forward(block, norm(x, block.ff_norm, c.eps));
  }
  return norm(x, stack.final_norm, c.eps);
}

// [1, N, L, L] of the table.
at::Tensor bias_of_length(const T5Stack& stack, const T5Config& c, int64_t length, bool bidirectional) {
  // The bucket depends on key - query in (-L, L) only.
  at::Tensor buckets = at::empty({2 * length - 1}, at::kLong);
  int64_t* data = buckets.data_ptr<int64_t>();
  for (int64_t i = 0; i < 2 * length - 1; ++i) {
    data[i] = relative_bucket(i - (length - 1), bidirectional, c.num_buckets, c.max_distance);
  }
  const at::Tensor positions = at::arange(length, at::kLong);
  const at::Tensor difference =
      positions.unsqueeze(0) - positions.unsqueeze(1) + (length - 1);  // (query, key)
  const at::Tensor bucket = buckets.index_select(0, difference.view({-1})).to(stack.relative_bias.device());
  return at::embedding(stack.relative_bias, bucket)
      .view({1, length, length, c.num_heads})
      .permute({0, 3, 1, 2})
      .contiguous();
}

}  // namespace

int64_t relative_bucket(int64_t key_minus_query, bool bidirectional, int64_t num_buckets,
                        int64_t max_distance) {
  int64_t first = 0;
  int64_t distance = -key_minus_query;
  if (bidirectional) {
    num_buckets /= 2;
    if (key_minus_query > 0) first = num_buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(distance, 0);
  }
  const int64_t exact = num_buckets / 2;
  if (distance < exact) return first + distance;
  // In float32, as published: at powers of two the rounding decides.
  const float share =
      std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
      static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
  const auto steps = static_cast<int64_t>(share * static_cast<float>(num_buckets - exact));
  return first + std::min(exact + steps, num_buckets - 1);
}

at::Tensor score_mask(const at::Tensor& mask) {
  if (mask.dim() != 2 && mask.dim() != 3)
    usage_error("T5: the mask must be [B, L] or [B, L, L]; found ", mask.sizes());
  const at::Tensor seen = mask.to(at::kBool).unsqueeze(1);
  const at::Tensor added =
      at::zeros(seen.sizes(), seen.options().dtype(at::kFloat)).masked_fill_(seen.logical_not(), kHidden);
  return mask.dim() == 2 ? added.unsqueeze(1) : added;
}

void check_t5_ids(const at::Tensor& ids, const T5Config& c) {
  if (ids.dim() != 2 || ids.scalar_type() != at::kLong) {
    usage_error("T5: ids must be [B, L] int64; found ", ids.sizes(), " ", ids.scalar_type());
  }
  if (!ids.is_cpu() || ids.numel() == 0) return;
  const int64_t low = ids.min().item<int64_t>(), high = ids.max().item<int64_t>();
  if (low < 0 || high >= c.vocab_size) {
    usage_error("T5: id ", low < 0 ? low : high, " is outside its ", c.vocab_size,
                " embeddings; was the text prepared with another tokenizer?");
  }
}

at::Tensor T5Encoder::position_bias(int64_t length) const {
  const at::Tensor& table = model_.encoder.relative_bias;
  if (table.requires_grad()) return bias_of_length(model_.encoder, model_.config, length, true);
  if (!bias_.defined() || bias_.size(2) < length)
    bias_ = bias_of_length(model_.encoder, model_.config, length, true);
  return bias_.narrow(2, 0, length).narrow(3, 0, length);
}

at::Tensor T5Encoder::forward(const at::Tensor& ids, const at::Tensor& mask,
                              std::vector<at::Tensor>* hidden) const {
  check_t5_ids(ids, config());
  const int64_t length = ids.size(1);
  at::Tensor bias = position_bias(length);
  if (mask.defined()) {
    if (mask.size(0) != ids.size(0) || mask.size(-1) != length) {
      usage_error("T5: the mask must be [B, L] or [B, L, L] with B=", ids.size(0), ", L=", length, "; found ",
                  mask.sizes());
    }
    bias = bias + score_mask(mask);
  }
  const at::Tensor embedded = at::embedding(model_.embedding, ids);
  return run(model_.encoder, config(), embedded, bias.to(embedded.scalar_type()), {}, hidden).to(at::kFloat);
}

std::string T5Encoder::digest() const {
  T5Model shared = model_;
  std::string text = t5_config_json([&] {
                       T5Config c = config();
                       c.num_decoder_layers = c.num_layers;  // the decoder does not matter here
                       c.tied_head = true;
                       return c;
                     }())
                         .dump();
  for (const T5Weight& weight : all_weights(shared, /*with_decoder=*/false)) {
    const at::Tensor bytes = weight.tensor->detach().cpu().contiguous();
    text += weight.name + elf::digest({static_cast<const char*>(bytes.data_ptr()), bytes.nbytes()});
  }
  return elf::digest(text);
}

at::Tensor t5_decode(const T5Model& model, const at::Tensor& decoder_ids, const at::Tensor& memory,
                     const at::Tensor& memory_mask) {
  const T5Config& c = model.config;
  check_t5_ids(decoder_ids, c);
  const int64_t length = decoder_ids.size(1);
  const at::Tensor causal = at::ones({1, length, length}, memory.options().dtype(at::kBool)).tril();
  const at::Tensor bias =
      bias_of_length(model.decoder, c, length, /*bidirectional=*/false) + score_mask(causal);
  at::Tensor x = run(model.decoder, c, at::embedding(model.embedding, decoder_ids), bias,
                     {memory, score_mask(memory_mask)});
  if (model.head.defined()) return at::linear(x, model.head);
  return at::linear(x * (1.0 / std::sqrt(static_cast<double>(c.d_model))), model.embedding);
}

}  // namespace elf
