#include "elf/model/weight_map.h"

#include <functional>
#include <numeric>
#include <set>

#include "elf/base/error.h"
#include "elf/nn/swiglu.h"
#include "elf/nn/timestep_embedder.h"

namespace elf {
namespace {

using nn::Init;

void check_sizes(const ModelConfig& c) {
  const auto positive = [](const char* key, int64_t value) {
    if (value <= 0) usage_error("model.", key, ": ", value, " found, expected a positive number");
  };
  positive("depth", c.depth);
  positive("hidden_size", c.hidden_size);
  positive("num_heads", c.num_heads);
  positive("latent_dim", c.latent_dim);
  positive("bottleneck_dim", c.bottleneck_dim);
  positive("vocab_size (that of the tokenizer, when left at 0)", c.vocab_size);
  positive("max_length (that of the dataset, when left at 0)", c.max_length);
  if (c.hidden_size % c.num_heads != 0) {
    usage_error("model.num_heads ", c.num_heads, " does not divide model.hidden_size ", c.hidden_size);
  }
  if (c.hidden_size / c.num_heads % 2 != 0) {
    usage_error("model.hidden_size ", c.hidden_size, " / model.num_heads ", c.num_heads,
                " is odd; rotary positions need an even head width");
  }
  if (nn::swiglu_inner(c.hidden_size, c.mlp_ratio) <= 0)
    usage_error("model.mlp_ratio ", c.mlp_ratio, " leaves no inner width");
  for (const int64_t tokens : {c.num_time_tokens, c.num_self_cond_cfg_tokens, c.num_model_mode_tokens}) {
    if (tokens < 0) usage_error("model: ", tokens, " prefix tokens; expected 0 or more of each kind");
  }
}

// Builds the list in order; each method adds one layer's weights.
class Table {
 public:
  void vector(const std::string& name, std::vector<int64_t> shape, Init init) {
    specs_.push_back({name, std::move(shape), init});
  }
  void linear(const std::string& name, int64_t in, int64_t out, bool bias, Init init = Init::kXavierUniform) {
    specs_.push_back({name + ".weight", {out, in}, init, in, out});
    if (bias) vector(name + ".bias", {out}, Init::kZero);
  }
  void kernel(const std::string& name, int64_t in, int64_t out) {
    specs_.push_back({name + "_kernel", {in, out}, Init::kXavierUniform, in, out});
    vector(name + "_bias", {out}, Init::kZero);
  }
  void embedder(const std::string& name, int64_t hidden) {
    linear(name + ".mlp_0", nn::kTimestepFeatures, hidden, true, Init::kSmallNormal);
    linear(name + ".mlp_2", hidden, hidden, true, Init::kSmallNormal);
  }
  void tokens(const std::string& name, int64_t count, int64_t hidden) {
    if (count > 0) vector(name, {1, count, hidden}, Init::kSmallNormal);
  }
  void block(const std::string& name, const ModelConfig& c) {
    const int64_t hidden = c.hidden_size, inner = nn::swiglu_inner(hidden, c.mlp_ratio);
    vector(name + ".norm1.weight", {hidden}, Init::kOne);
    linear(name + ".attn.qkv", hidden, 3 * hidden, true);
    vector(name + ".attn.q_norm.weight", {hidden / c.num_heads}, Init::kOne);
    vector(name + ".attn.k_norm.weight", {hidden / c.num_heads}, Init::kOne);
    linear(name + ".attn.proj", hidden, hidden, true);
    vector(name + ".norm2.weight", {hidden}, Init::kOne);
    linear(name + ".mlp.w12", hidden, 2 * inner, true);
    linear(name + ".mlp.w3", inner, hidden, true);
    if (c.conditioning == Conditioning::kAdaLnZero) modulation(name, 6 * hidden, hidden);
  }
  void modulation(const std::string& name, int64_t out, int64_t hidden) {
    linear(name + ".adaLN_modulation", hidden, out, true, Init::kZero);
  }
  std::vector<WeightSpec> take() { return std::move(specs_); }

 private:
  std::vector<WeightSpec> specs_;
};

}  // namespace

std::vector<WeightSpec> weight_specs(const ModelConfig& c) {
  check_sizes(c);
  const int64_t hidden = c.hidden_size, latent = c.latent_dim;
  Table table;
  if (c.conditioning == Conditioning::kInContext) {
    table.tokens("t_emb_tokens", c.num_time_tokens, hidden);
    table.tokens("self_cond_cfg_tokens", c.num_self_cond_cfg_tokens, hidden);
    table.tokens("mode_tokens", c.num_model_mode_tokens, hidden);
  } else if (c.num_model_mode_tokens > 0) {
    table.vector("mode_embedding", {hidden}, Init::kSmallNormal);
  }
  table.kernel("proj", hidden, latent);
  table.kernel("unembed", latent, c.vocab_size);
  table.linear("self_cond_proj", 2 * latent, latent, true);
  table.linear("text_proj.proj1", latent, c.bottleneck_dim, false);
  table.linear("text_proj.proj2", c.bottleneck_dim, hidden, true);
  table.embedder("t_embedder", hidden);
  if (c.num_self_cond_cfg_tokens > 0) table.embedder("self_cond_cfg_embedder", hidden);
  for (int64_t i = 0; i < c.depth; ++i) table.block(cat("blocks.", i), c);
  table.vector("final_layer.norm_final.weight", {hidden}, Init::kOne);
  if (c.conditioning == Conditioning::kAdaLnZero) table.modulation("final_layer", 2 * hidden, hidden);
  table.linear("final_layer.linear", hidden, latent, true, Init::kZero);
  return table.take();
}

int64_t parameter_count(const ModelConfig& config) {
  int64_t count = 0;
  for (const WeightSpec& spec : weight_specs(config)) {
    count += std::accumulate(spec.shape.begin(), spec.shape.end(), int64_t{1}, std::multiplies<>());
  }
  return count;
}

void require_weights(const ModelConfig& config, const TensorMap& weights, const std::string& origin) {
  std::string problems;
  std::set<std::string> known;
  for (const WeightSpec& spec : weight_specs(config)) {
    known.insert(spec.name);
    const at::IntArrayRef expected(spec.shape);
    const auto found = weights.find(spec.name);
    if (found == weights.end()) {
      problems += cat("\n  missing: ", spec.name, " ", expected);
    } else if (found->second.sizes() != expected) {
      problems += cat("\n  shape: ", spec.name, " is ", found->second.sizes(), ", expected ", expected);
    }
  }
  for (const auto& [name, tensor] : weights) {
    if (!known.contains(name)) problems += cat("\n  unexpected: ", name, " ", tensor.sizes());
  }
  if (!problems.empty()) usage_error(origin, ": these do not fit the model's configuration:", problems);
}

std::string published_name(const std::string& name) {
  size_t start = 0;
  for (bool stripped = true; stripped;) {
    stripped = false;
    for (const std::string prefix : {"module.", "_orig_mod."}) {
      if (name.compare(start, prefix.size(), prefix) == 0) {
        start += prefix.size();
        stripped = true;
      }
    }
  }
  return name.substr(start);
}

TensorMap published_names(const TensorMap& weights) {
  TensorMap result;
  for (const auto& [name, tensor] : weights) {
    if (!result.emplace(published_name(name), tensor).second) {
      usage_error("weights: '", name, "' and another tensor are both called '", published_name(name),
                  "' once wrapper prefixes are removed");
    }
  }
  return result;
}

}  // namespace elf
