// GPT-2 (Radford et al. 2019) as a scorer of texts: a causal transformer that gives each token's probability
// after the tokens before it. Any size, from a Hugging Face folder. Pure forwards without gradients.
// B batch, L length, D width, V vocabulary, F inner width of the feed-forward.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "elf/tensor/safetensors_shapes.h"

namespace elf {

struct Gpt2Config {
  int64_t vocab_size = 50257;
  int64_t positions = 1024;  // longest input
  int64_t width = 768;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t inner = 3072;
  double eps = 1e-5;                // of LayerNorm
  bool tanh_gelu = true;            // gelu_new; false: the exact gelu
  bool scale_by_layer = false;      // scale_attn_by_inverse_layer_idx
  bool scale_by_head_width = true;  // scale_attn_weights
};

// Reads a Hugging Face config.json. Throws Error (usage) naming file and key: no GPT-2, an activation other
// than gelu, a missing or non-positive size.
Gpt2Config read_gpt2_config(const std::filesystem::path& file);

// The files of the folder that Gpt2::load and Gpt2Tokenizer::load read: config.json, the weights, and
// vocab.json and merges.txt where they are. Throws Error (usage) as load.
std::vector<std::string> gpt2_files(const std::filesystem::path& folder);

class Gpt2 {
 public:
  // config.json with model.safetensors (or its shards, or pytorch_model.bin); names with or without
  // "transformer.". Weights of any floating dtype become `dtype`, on `device`. Throws Error (usage): files
  // missing, every missing or mis-shaped tensor by name at once.
  static Gpt2 load(const std::filesystem::path& folder, at::Device device, at::ScalarType dtype = at::kFloat);

  const Gpt2Config& config() const { return config_; }
  // The tensors that it was made of, by their names, shapes and dtypes in the files.
  const std::map<std::string, TensorShape>& stored() const { return stored_; }
  const std::string& digest() const { return digest_; }  // of the weight files as stored
  at::Device device() const { return token_table_.device(); }
  at::ScalarType dtype() const { return token_table_.scalar_type(); }

  // ids [B, L] int64, 1 <= L <= positions -> [B, L, D] after the final norm. key_mask [B, L] (non-zero = may
  // be attended to; undefined: all) is needed for padding at the left only: to the right nothing looks.
  // `hidden`, if given, receives the input of every block. Throws Error (usage): ids outside the vocabulary
  // or too many.
  at::Tensor forward(const at::Tensor& ids, const at::Tensor& key_mask = {},
                     std::vector<at::Tensor>* hidden = nullptr) const;

  // [..., D] -> [..., V]. Of a few positions only: the logits of a whole batch would fill gigabytes.
  at::Tensor logits(const at::Tensor& features) const;

  // features [N, D], targets [N] int64 -> [N] f32: -log p(target), a slice of the positions at a time, so
  // that never more than 64 MiB of logits exist.
  at::Tensor nll(const at::Tensor& features, const at::Tensor& targets) const;

 private:
  struct Map {
    at::Tensor weight, bias;  // [out, in], [out]
    at::Tensor operator()(const at::Tensor& x) const;
  };
  struct Norm {
    at::Tensor weight, bias;  // [D]
  };
  struct Block {
    Norm norm1;
    Map qkv, proj;  // D -> 3 D, D -> D
    Norm norm2;
    Map up, down;  // D -> F, F -> D
  };
  friend struct Gpt2Loader;

  at::Tensor norm(const at::Tensor& x, const Norm& norm) const;
  at::Tensor attend(const Block& block, int64_t layer, const at::Tensor& x, const at::Tensor& mask) const;

  Gpt2Config config_;
  std::map<std::string, TensorShape> stored_;
  std::string digest_;
  at::Tensor token_table_, position_table_;  // [V, D], [positions, D]
  std::vector<Block> blocks_;
  Norm final_norm_;
};

}  // namespace elf
