#include "t5_weights.h"

#include <ATen/ATen.h>

#include <cmath>

#include "elf/base/error.h"
#include "elf/tensor/random.h"

namespace elf {
namespace {

double inverse_root(int64_t size) {
  return 1.0 / std::sqrt(static_cast<double>(size));
}

void add_attention(std::vector<T5Weight>& list, T5Attention& attention, const T5Config& c,
                   const std::string& prefix) {
  const int64_t inner = c.num_heads * c.d_kv;
  // The missing 1/sqrt(d_kv) of the scores is in the initial q.
  list.push_back(
      {prefix + "q.weight", &attention.q, {inner, c.d_model}, inverse_root(c.d_model * c.d_kv), true});
  list.push_back({prefix + "k.weight", &attention.k, {inner, c.d_model}, inverse_root(c.d_model), true});
  list.push_back({prefix + "v.weight", &attention.v, {inner, c.d_model}, inverse_root(c.d_model), true});
  list.push_back({prefix + "o.weight", &attention.o, {c.d_model, inner}, inverse_root(inner), true});
}

void add_feed_forward(std::vector<T5Weight>& list, T5Block& block, const T5Config& c,
                      const std::string& prefix) {
  const double std = inverse_root(c.d_model);
  list.push_back(
      {prefix + (c.gated ? "wi_0.weight" : "wi.weight"), &block.wi, {c.d_ff, c.d_model}, std, true});
  if (c.gated) list.push_back({prefix + "wi_1.weight", &block.wi_linear, {c.d_ff, c.d_model}, std, true});
  list.push_back({prefix + "wo.weight", &block.wo, {c.d_model, c.d_ff}, inverse_root(c.d_ff), true});
}

}  // namespace

std::vector<T5Weight> stack_weights(T5Stack& stack, const T5Config& c, const std::string& which) {
  const bool decoder = which == "decoder";
  stack.blocks.resize(static_cast<size_t>(decoder ? c.num_decoder_layers : c.num_layers));
  std::vector<T5Weight> list;
  for (size_t i = 0; i < stack.blocks.size(); ++i) {
    T5Block& block = stack.blocks[i];
    const std::string prefix = cat(which, ".block.", i, ".layer.");
    add_attention(list, block.self, c, prefix + "0.SelfAttention.");
    if (i == 0) {
      list.push_back({prefix + "0.SelfAttention.relative_attention_bias.weight",
                      &stack.relative_bias,
                      {c.num_buckets, c.num_heads},
                      inverse_root(c.d_model),
                      false});
    }
    list.push_back({prefix + "0.layer_norm.weight", &block.self_norm, {c.d_model}, 0, false});
    if (decoder) {
      add_attention(list, block.cross, c, prefix + "1.EncDecAttention.");
      list.push_back({prefix + "1.layer_norm.weight", &block.cross_norm, {c.d_model}, 0, false});
    }
    const std::string last = prefix + (decoder ? "2." : "1.");
    add_feed_forward(list, block, c, last + "DenseReluDense.");
    list.push_back({last + "layer_norm.weight", &block.ff_norm, {c.d_model}, 0, false});
  }
  list.push_back({which + ".final_layer_norm.weight", &stack.final_norm, {c.d_model}, 0, false});
  return list;
}

std::vector<T5Weight> all_weights(T5Model& model, bool with_decoder) {
  const T5Config& c = model.config;
  std::vector<T5Weight> list{{"shared.weight", &model.embedding, {c.vocab_size, c.d_model}, 1.0, false}};
  for (T5Weight& weight : stack_weights(model.encoder, c, "encoder")) list.push_back(std::move(weight));
  if (!with_decoder) return list;
  for (T5Weight& weight : stack_weights(model.decoder, c, "decoder")) list.push_back(std::move(weight));
  if (!c.tied_head) {
    list.push_back({"lm_head.weight", &model.head, {c.vocab_size, c.d_model}, inverse_root(c.d_model), true});
  }
  return list;
}

T5Model random_t5(const T5Config& config, uint64_t seed) {
  T5Model model;
  model.config = config;
  uint64_t index = 0;
  for (const T5Weight& weight : all_weights(model, /*with_decoder=*/true)) {
    const Stream stream{seed, Purpose::kInit, index++};
    if (weight.init_std == 0) {
      *weight.tensor = at::ones(weight.shape);
    } else {
      *weight.tensor =
          normal(stream, sample_range(0, weight.shape[0]), {weight.shape[1]}).mul_(weight.init_std);
    }
  }
  return model;
}

ParamList t5_params(T5Model& model) {
  ParamList params;
  for (const T5Weight& weight : all_weights(model, model.has_decoder())) {
    ParamRef param{weight.name, *weight.tensor};
    if (weight.linear) {
      param.fan_in = weight.shape[1];
      param.fan_out = weight.shape[0];
    }
    params.push_back(std::move(param));
  }
  return params;
}

void to_device(T5Model& model, at::Device device) {
  for (const T5Weight& weight : all_weights(model, model.has_decoder()))
    *weight.tensor = weight.tensor->to(device);
}

void to_dtype(T5Model& model, at::ScalarType dtype) {
  if (dtype != at::kFloat && dtype != at::kBFloat16)
    usage_error("T5 in ", dtype, ": expected float32 or bfloat16",
                dtype == at::kHalf ? "; its feed-forward layers pass 65504, where float16 ends" : "");
  for (const T5Weight& weight : all_weights(model, model.has_decoder()))
    *weight.tensor = weight.tensor->to(dtype);
}

}  // namespace elf
