#include "elf/model/elf_net.h"

#include <ATen/ATen.h>

#include "elf/base/error.h"
#include "elf/flow/interpolant.h"
#include "elf/model/weight_map.h"
#include "elf/nn/init.h"
#include "elf/nn/recompute.h"
#include "elf/nn/rms_norm.h"
#include "elf/tensor/autocast.h"

namespace elf {
namespace {

// The handles of a ParamList by name; undefined where the network has no such weight.
class Named {
 public:
  explicit Named(const ParamList& parameters) {
    for (const ParamRef& parameter : parameters) tensors_.emplace(parameter.name, parameter.tensor);
  }
  at::Tensor operator()(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? at::Tensor() : found->second;
  }
  nn::Linear linear(const std::string& name) const {
    return {(*this)(name + ".weight"), (*this)(name + ".bias")};
  }
  nn::TimestepEmbedder embedder(const std::string& name) const {
    return {linear(name + ".mlp_0"), linear(name + ".mlp_2")};
  }

 private:
  TensorMap tensors_;
};

std::string shape_text(at::IntArrayRef sizes) {
  return cat(sizes);
}

}  // namespace

ElfNet::ElfNet(const ModelConfig& resolved, at::Device device) : config_(resolved) {
  for (const WeightSpec& spec : weight_specs(config_)) {
    const at::Tensor weight =
        at::empty(spec.shape, at::TensorOptions(device).dtype(at::kFloat)).requires_grad_();
    parameters_.push_back({spec.name, weight, spec.fan_in, spec.fan_out});
  }
  bind_weights();
  rope_ = nn::make_rope_table(config_.max_length, config_.hidden_size / config_.num_heads, device);
}

void ElfNet::bind_weights() {
  const Named named(parameters_);
  self_cond_proj_ = named.linear("self_cond_proj");
  text_proj1_ = named.linear("text_proj.proj1");
  text_proj2_ = named.linear("text_proj.proj2");
  t_embedder_ = named.embedder("t_embedder");
  w_embedder_ = named.embedder("self_cond_cfg_embedder");
  t_tokens_ = named("t_emb_tokens");
  w_tokens_ = named("self_cond_cfg_tokens");
  mode_tokens_ = named("mode_tokens");
  mode_embedding_ = named("mode_embedding");
  final_modulation_ = named.linear("final_layer.adaLN_modulation");
  for (int64_t i = 0; i < config_.depth; ++i) {
    const std::string block = cat("blocks.", i);
    blocks_.push_back(
        {named(block + ".norm1.weight"),
         named(block + ".norm2.weight"),
         {named.linear(block + ".attn.qkv"), named(block + ".attn.q_norm.weight"),
          named(block + ".attn.k_norm.weight"), named.linear(block + ".attn.proj"), config_.num_heads},
         {named.linear(block + ".mlp.w12"), named.linear(block + ".mlp.w3")},
         named.linear(block + ".adaLN_modulation")});
    block_weights_.emplace_back();
    for (const ParamRef& parameter : parameters_) {
      if (parameter.name.starts_with(block + ".")) block_weights_.back().push_back(parameter.tensor);
    }
  }
  final_norm_ = named("final_layer.norm_final.weight");
  final_linear_ = named.linear("final_layer.linear");
  proj_kernel_ = named("proj_kernel");
  proj_bias_ = named("proj_bias");
  unembed_kernel_ = named("unembed_kernel");
  unembed_bias_ = named("unembed_bias");
}

void ElfNet::initialise(uint64_t seed) {
  const std::vector<WeightSpec> specs = weight_specs(config_);
  for (size_t i = 0; i < specs.size(); ++i) {
    nn::initialise(parameters_[i].tensor, specs[i].init, seed, specs[i].name, specs[i].fan_in,
                   specs[i].fan_out);
  }
}

void ElfNet::load(const TensorMap& weights, const std::string& origin) {
  require_weights(config_, weights, origin);
  const at::NoGradGuard no_grad;
  for (const ParamRef& parameter : parameters_)
    at::Tensor(parameter.tensor).copy_(weights.at(parameter.name));
}

TensorMap ElfNet::state() const {
  TensorMap result;
  for (const ParamRef& parameter : parameters_) result.emplace(parameter.name, parameter.tensor.detach());
  return result;
}

void ElfNet::check(const DenoiserInput& input) const {
  const at::Tensor& z = input.z;
  if (!z.defined() || z.dim() != 3 || z.size(2) != config_.latent_dim || z.size(1) > config_.max_length) {
    usage_error("network input z: expected [B, L <= ", config_.max_length, ", D = ", config_.latent_dim,
                "], got ", z.defined() ? shape_text(z.sizes()) : "nothing");
  }
  const auto expect = [](const char* name, const at::Tensor& tensor, at::IntArrayRef sizes) {
    if (tensor.sizes() != sizes)
      usage_error("network input ", name, ": expected ", shape_text(sizes), ", got ",
                  shape_text(tensor.sizes()));
  };
  if (!input.t.defined()) usage_error("network input t is missing: expected [B]");
  expect("t", input.t, {z.size(0)});
  if (input.w.defined()) expect("w", input.w, {z.size(0)});
  if (input.mode.defined()) expect("mode", input.mode, {z.size(0)});
  if (input.self_cond.defined()) expect("self_cond", input.self_cond, z.sizes());
  if (input.key_mask.defined()) expect("key_mask", input.key_mask, {z.size(0), z.size(1)});
}

std::vector<at::Tensor> ElfNet::prefix_tokens(const DenoiserInput& input) {
  const int64_t batch = input.z.size(0);
  std::vector<at::Tensor> tokens;
  if (t_tokens_.defined()) {
    const at::Tensor embedding = t_embedder_(input.t);
    record("t_embedding", embedding);
    tokens.push_back(t_tokens_ + embedding.unsqueeze(1));
  }
  if (w_tokens_.defined() && input.w.defined()) {
    const at::Tensor embedding = w_embedder_(input.w);
    record("w_embedding", embedding);
    tokens.push_back(w_tokens_ + embedding.unsqueeze(1));
  }
  if (mode_tokens_.defined()) {
    tokens.push_back(
        input.mode.defined()
            ? mode_tokens_ * input.mode.reshape({batch, 1, 1})
            : at::zeros({1}, input.z.options()).expand({batch, mode_tokens_.size(1), config_.hidden_size}));
  }
  return tokens;
}

// [B, H] what adaln_zero reads of t, w and the mode.
at::Tensor ElfNet::condition_vector(const DenoiserInput& input) {
  at::Tensor sum = t_embedder_(input.t);
  if (w_embedder_.mlp_0.weight.defined() && input.w.defined()) sum = sum + w_embedder_(input.w);
  if (mode_embedding_.defined() && input.mode.defined())
    sum = sum + input.mode.unsqueeze(1) * mode_embedding_;
  return at::silu(sum);
}

at::Tensor ElfNet::run_blocks(at::Tensor x, int64_t prefix, const at::Tensor& key_mask,
                              const at::Tensor& condition, bool dropout) {
  const Bfloat16Scope scope(x.device().type(), bfloat16_blocks_);
  for (int64_t i = 0; i < config_.depth; ++i) {
    if (!recompute_) {
      x = run_block(i, x, prefix, key_mask, condition, dropout ? &*dropout_ : nullptr);
      continue;
    }
    // Runs again in the backward pass, when this scope has ended and the next micro-batch's key may be set.
    const auto key = dropout ? dropout_ : std::nullopt;
    const auto block = [this, i, prefix, key_mask, condition, key](const at::Tensor& in) {
      const Bfloat16Scope again(in.device().type(), bfloat16_blocks_);
      return run_block(i, in, prefix, key_mask, condition, key ? &*key : nullptr);
    };
    std::vector<at::Tensor> read = block_weights_[i];
    if (condition.defined()) read.push_back(condition);
    x = nn::recomputed(block, x, read);
  }
  return x;
}

at::Tensor ElfNet::run_block(int64_t index, const at::Tensor& x, int64_t prefix, const at::Tensor& key_mask,
                             const at::Tensor& condition, const nn::DropoutKey* dropout) {
  const nn::Block& block = blocks_[index];
  const bool fused = dropout == nullptr && !bfloat16_blocks_ && !key_mask.defined() && !condition.defined() &&
                     nn::serves_fused_block(x);
  if (fused && !trace_) return nn::fused_block(block, x, rope_, prefix);
  const bool drops = dropout != nullptr && config_.depth / 4 <= index && index < config_.depth / 4 * 3;
  const auto drop = [&](const at::Tensor& value, nn::DropoutSite site) {
    return drops ? nn::dropout(value, config_.dropout, *dropout, index, site) : value;
  };
  const std::string name = trace_ ? cat("block", index) : "";
  // adaln_zero: shift, scale and gate of the attention, then of the feed-forward layer, [B, 1, H] each.
  std::vector<at::Tensor> m;
  if (condition.defined()) m = block.modulation(condition).unsqueeze(1).chunk(6, -1);
  const auto modulated = [&](const at::Tensor& value, size_t first) {
    return m.empty() ? value : value * (1 + m[first + 1]) + m[first];
  };
  const auto gated = [&](const at::Tensor& value, size_t first) {
    return m.empty() ? value : value * m[first + 2];
  };
  const at::Tensor normed = modulated(nn::rms_norm(x, block.norm1), 0);
  if (trace_) record_heads(index, normed, prefix);
  const at::Tensor attended =
      gated(drop(block.attn(normed, rope_, prefix, key_mask), nn::DropoutSite::kAttention), 0);
  const at::Tensor middle = x + attended;
  const at::Tensor normed2 = modulated(nn::rms_norm(middle, block.norm2), 3);
  const at::Tensor fed = gated(
      block.mlp(normed2, [&](const at::Tensor& product) { return drop(product, nn::DropoutSite::kSwiGlu); }),
      3);
  at::Tensor out =
      fused ? nn::fused_block(block, x, rope_, prefix) : middle + fed;  // tracing changes nothing
  record(name + ".norm1", normed);
  record(name + ".attn", attended);
  record(name + ".norm2", normed2);
  record(name + ".mlp", fed);
  record(name, out);
  return out;
}

at::Tensor ElfNet::features(const DenoiserInput& input) {
  check(input);
  at::Tensor x = input.z;
  if (input.self_cond.defined()) {
    x = self_cond_proj_(at::cat({input.z, input.self_cond}, -1));
    record("self_cond_proj", x);
  }
  x = text_proj2_(text_proj1_(x));
  record("text_proj", x);
  const bool in_context = config_.conditioning == Conditioning::kInContext;
  const at::Tensor condition = in_context ? at::Tensor() : condition_vector(input);
  std::vector<at::Tensor> sequence = in_context ? prefix_tokens(input) : std::vector<at::Tensor>();
  sequence.push_back(x);
  x = sequence.size() == 1 ? x : at::cat(sequence, 1);
  record("with_prefix", x);
  const int64_t length = input.z.size(1), prefix = x.size(1) - length;
  at::Tensor key_mask;
  if (input.key_mask.defined())
    key_mask = at::constant_pad_nd(input.key_mask.to(at::kBool), {prefix, 0}, true);
  const bool dropout = input.dropout && config_.dropout > 0 && dropout_.has_value();
  x = run_blocks(x, prefix, key_mask, condition, dropout).to(at::kFloat).narrow(1, prefix, length);
  record("features", x);
  if (in_context) return x;
  // The denoise head's norm is modulated as well; that head is not told which row a feature is of, so it is
  // done here.
  const std::vector<at::Tensor> last = final_modulation_(condition).unsqueeze(1).chunk(2, -1);
  return at::cat({x, nn::rms_norm(x, final_norm_) * (1 + last[1]) + last[0]}, -1);
}

at::Tensor ElfNet::denoise_head(const at::Tensor& features) {
  const at::Tensor normed = config_.conditioning == Conditioning::kInContext
                                ? nn::rms_norm(features, final_norm_)
                                : features.narrow(-1, config_.hidden_size, config_.hidden_size);
  record("final_norm", normed);
  return final_linear_(normed);
}

at::Tensor ElfNet::x_from_output(const at::Tensor& output, const at::Tensor& z, const at::Tensor& t) {
  return x_from_prediction(config_.prediction, output, z, t);
}

at::Tensor ElfNet::decode_head(const at::Tensor& features) {
  std::vector<int64_t> sizes = features.sizes().vec();
  const at::Tensor rows = features.narrow(-1, 0, config_.hidden_size).reshape({-1, config_.hidden_size});
  const at::Tensor latent = at::gelu(at::addmm(proj_bias_, rows, proj_kernel_), "tanh");
  sizes.back() = config_.vocab_size;
  return at::addmm(unembed_bias_, latent, unembed_kernel_).reshape(sizes);
}

void ElfNet::record(const std::string& name, const at::Tensor& value) {
  if (trace_) trace_->insert_or_assign(name, value.detach());
}

// What the fused pass over queries and keys does not show on its way.
void ElfNet::record_heads(int64_t index, const at::Tensor& normed, int64_t prefix) {
  const nn::Attention& attn = blocks_[index].attn;
  const at::Tensor qkv = attn.qkv(normed);
  const nn::Heads heads = nn::make_heads(qkv, attn.q_norm, attn.k_norm, config_.num_heads, rope_, prefix);
  const at::Tensor parts = qkv.unflatten(-1, {3, config_.num_heads, -1}).permute({2, 0, 3, 1, 4});
  const std::string block = cat("block", index);
  record(block + ".q_normed", nn::rms_norm(parts.select(0, 0), attn.q_norm));
  record(block + ".k_normed", nn::rms_norm(parts.select(0, 1), attn.k_norm));
  record(block + ".q_rotated", heads.q);
  record(block + ".k_rotated", heads.k);
}

}  // namespace elf
