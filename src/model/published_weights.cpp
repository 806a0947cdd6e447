#include "elf/model/published_weights.h"

#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <fstream>

#include "elf/base/error.h"
#include "elf/model/weight_map.h"
#include "elf/nn/swiglu.h"
#include "elf/tensor/torch_pickle.h"

namespace elf {
namespace fs = std::filesystem;
namespace {

using Kind = TorchObject::Kind;

// Where checkpoints keep their weights; the published code's own names first.
constexpr std::array kRawKeys = {"params", "model", "state_dict", "model_state_dict", "module"};
constexpr std::array kEmaKeys = {"ema_params1", "ema", "ema_params", "ema_state_dict", "model_ema"};

template <size_t N>
TensorMap under(const TorchObject& root, const std::array<const char*, N>& keys, const std::string& file) {
  for (const char* key : keys) {
    const TorchObject* found = root.find(key);
    if (found && found->is(Kind::kDict)) return tensors_of(*found, cat(file, ": ", key));
    if (found && found->is(Kind::kOpaque)) tensors_of(*found, cat(file, ": ", key));  // says what it is
  }
  return {};
}

TensorMap in_float32(const TensorMap& weights, const std::string& file) {
  TensorMap result;
  for (const auto& [name, tensor] : published_names(weights)) {
    if (!tensor.is_floating_point())
      usage_error(file, ": '", name, "' is ", tensor.scalar_type(), ", expected a floating dtype");
    result[name] = tensor.to(at::kFloat);
  }
  return result;
}

int64_t integer_at(const TorchObject& root, const char* key) {
  const TorchObject* found = root.find(key);
  return found && found->is(Kind::kInteger) ? found->integer : -1;
}

PublishedWeights from_torch(const fs::path& path) {
  const TorchFile file = TorchFile::read(path);
  PublishedWeights result;
  result.raw = under(file.root(), kRawKeys, file.name());
  result.ema = under(file.root(), kEmaKeys, file.name());
  if (result.raw.empty() && result.ema.empty()) result.raw = tensors_of(file.root(), file.name());
  if (result.raw.empty() && result.ema.empty()) usage_error(file.name(), ": holds no tensors");
  result.step = integer_at(file.root(), "step");
  result.epoch = integer_at(file.root(), "epoch");
  result.skipped = file.skipped_text();
  return result;
}

// By its first bytes: a file of torch.save is a zip archive or begins with a pickle.
bool looks_like_torch(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const int first = in.get(), second = in.get();
  return (first == 'P' && second == 'K') || (first == 0x80 && second <= 5);
}

// Shapes by name, with messages.
class Shapes {
 public:
  Shapes(const TensorMap& weights, const std::string& origin) : weights_(weights), origin_(origin) {}
  bool has(const std::string& name) const { return weights_.contains(name); }
  int64_t size(const std::string& name, int64_t dim, int64_t dims) const {
    const auto found = weights_.find(name);
    if (found == weights_.end())
      usage_error(origin_, ": tensor '", name, "' is missing; these are no weights of an ELF (",
                  weights_.size(), " tensors)");
    if (found->second.dim() != dims || found->second.size(dim) == 0) {
      usage_error(origin_, ": tensor '", name, "' has shape ", found->second.sizes(), ", expected ", dims,
                  " dimensions");
    }
    return found->second.size(dim);
  }

 private:
  const TensorMap& weights_;
  const std::string& origin_;
};

// The ratio with this inner width; the one given, where that fits.
double mlp_ratio(int64_t hidden, int64_t inner, double given) {
  if (nn::swiglu_inner(hidden, given) == inner) return given;
  return (std::ceil(static_cast<double>(inner) * 1.5) + 0.5) / static_cast<double>(hidden);
}

}  // namespace

PublishedWeights read_published_weights(const fs::path& path) {
  PublishedWeights weights;
  if (looks_like_torch(path) || path.extension() == ".pt" || path.extension() == ".pth") {
    weights = from_torch(path);
  } else {
    weights.raw = read_safetensors(path);
  }
  weights.raw = in_float32(weights.raw, path.string());
  weights.ema = in_float32(weights.ema, path.string());
  return weights;
}

void write_published_weights(const fs::path& path, const PublishedWeights& weights) {
  std::vector<TorchItem> entries = {TorchItem::of("params", weights.raw.empty() ? weights.ema : weights.raw)};
  if (!weights.ema.empty()) entries.push_back(TorchItem::of("ema_params1", weights.ema));
  entries.push_back(TorchItem::of("opt_state", TensorMap{}));
  entries.push_back(TorchItem::of("lr_scheduler", TensorMap{}));
  entries.push_back(TorchItem::of("step", std::max<int64_t>(0, weights.step)));
  entries.push_back(TorchItem::of("epoch", std::max<int64_t>(0, weights.epoch)));
  write_torch_file(path, entries);
}

ModelConfig dimensions_of(const TensorMap& weights, const ModelConfig& known, const std::string& origin) {
  const Shapes shapes(weights, origin);
  ModelConfig config = known;
  config.preset.clear();
  config.hidden_size = shapes.size("final_layer.norm_final.weight", 0, 1);
  config.latent_dim = shapes.size("final_layer.linear.weight", 0, 2);
  config.bottleneck_dim = shapes.size("text_proj.proj1.weight", 0, 2);
  config.vocab_size = shapes.size("unembed_kernel", 1, 2);
  for (config.depth = 0; shapes.has(cat("blocks.", config.depth, ".norm1.weight")); ++config.depth) {
  }
  const int64_t head = shapes.size("blocks.0.attn.q_norm.weight", 0, 1);
  if (config.hidden_size % head != 0)
    usage_error(origin, ": head width ", head, " of blocks.0.attn.q_norm does not divide the width ",
                config.hidden_size);
  config.num_heads = config.hidden_size / head;
  config.mlp_ratio =
      mlp_ratio(config.hidden_size, shapes.size("blocks.0.mlp.w3.weight", 1, 2), known.mlp_ratio);
  const auto tokens = [&](const char* name) { return shapes.has(name) ? shapes.size(name, 1, 3) : 0; };
  if (shapes.has(
          "blocks.0.adaLN_modulation.weight")) {  // no prefix: the counts say whether there is an input
    const auto given = [&](const char* name, int64_t count) {
      return shapes.has(name) ? std::max<int64_t>(1, count) : 0;
    };
    config.conditioning = Conditioning::kAdaLnZero;
    config.num_self_cond_cfg_tokens =
        given("self_cond_cfg_embedder.mlp_0.weight", known.num_self_cond_cfg_tokens);
    config.num_model_mode_tokens = given("mode_embedding", known.num_model_mode_tokens);
    return config;
  }
  config.conditioning = Conditioning::kInContext;
  config.num_time_tokens = tokens("t_emb_tokens");
  config.num_self_cond_cfg_tokens = tokens("self_cond_cfg_tokens");
  config.num_model_mode_tokens = tokens("mode_tokens");
  return config;
}

}  // namespace elf
