// The network of docs/ALGORITHM.md section 2: one transformer for denoising and decoding, told of t, w and
// the mode by prefix tokens or, with model.conditioning adaln_zero, by scales, shifts and gates of every
// block.
//   prefix: [time tokens] [SC-CFG tokens] [mode tokens] [L data tokens], K prefix tokens in all.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "elf/config/model_config.h"
#include "elf/flow/denoiser.h"
#include "elf/nn/block.h"
#include "elf/nn/dropout.h"
#include "elf/nn/linear.h"
#include "elf/nn/timestep_embedder.h"
#include "elf/optim/parameters.h"
#include "elf/tensor/safetensors.h"

namespace elf {

// Float32 weights that require gradients; they keep their places in memory for the life of the network. One
// forward at a time.
//
// What an input may leave out: `self_cond` (then self_cond_proj is not used), `w` (then the SC-CFG tokens are
// left out of the prefix), `mode` (gate 0 everywhere), `key_mask`. Sequences may be shorter than max_length.
// `w` given to a network without SC-CFG tokens is ignored. Weights that take no part in a forward get no
// gradient (undefined, not zero): self_cond_proj without a self-condition half, the mode tokens without
// `mode`, the SC-CFG embedder without `w`, a head that was not called. Optimisers take a missing gradient for
// zero.
class ElfNet : public Denoiser {
 public:
  // Sizes as resolved: vocab_size and max_length > 0. The weights are not initialised. Throws Error (usage):
  // see weight_specs.
  ElfNet(const ModelConfig& resolved, at::Device device);

  const ModelConfig& config() const { return config_; }
  // In published module order; names, shapes and roles as in weight_map.h.
  const ParamList& parameters() const { return parameters_; }

  // Xavier-uniform matrices, N(0, 0.02^2) embedders and learned tokens, zero biases and last layer; a pure
  // function of (seed, name).
  void initialise(uint64_t seed);
  // Copies the values in. Throws Error (usage) naming `origin` and every missing, unexpected and mis-shaped
  // tensor at once; nothing is changed then. Names must be exact: see published_names() for those of wrapped
  // modules.
  void load(const TensorMap& weights, const std::string& origin = "weights");
  // The weights by name: handles on the very tensors, detached, not copies.
  TensorMap state() const;

  // [B, L, H]; with adaln_zero [B, L, 2 H]: the denoise head's modulated input behind the features.
  at::Tensor features(const DenoiserInput& input) override;
  at::Tensor denoise_head(const at::Tensor& features) override;
  at::Tensor decode_head(const at::Tensor& features) override;
  at::Tensor x_from_output(const at::Tensor& output, const at::Tensor& z, const at::Tensor& t) override;
  std::vector<at::Tensor> decode_weights() const override {
    return {proj_kernel_, proj_bias_, unembed_kernel_, unembed_bias_};
  }

  // [D, V], the very tensor: what a learned latent source is tied with.
  at::Tensor unembedding() const { return unembed_kernel_; }

  // Dropout (config().dropout, middle half of the blocks) acts on inputs with `dropout` set, with masks named
  // by this key. Without a key: none.
  void set_dropout(std::optional<nn::DropoutKey> key) { dropout_ = std::move(key); }

  // Blocks in bfloat16 (autocast), everything before and after them in float32.
  void set_bfloat16_blocks(bool on) { bfloat16_blocks_ = on; }
  // Blocks keep only their inputs for the backward pass and run again in it: the same gradients, less memory.
  void set_recompute(bool on) { recompute_ = on; }

  // For tests and inspection: while set, every forward puts its intermediates into `trace` (self_cond_proj,
  // text_proj, t_embedding, w_embedding, with_prefix, block<i> and
  // block<i>.{norm1,attn,norm2,mlp,q_normed,k_normed,q_rotated,k_rotated}, features, final_norm). nullptr:
  // off.
  void set_trace(TensorMap* trace) { trace_ = trace; }

 private:
  void bind_weights();
  void check(const DenoiserInput& input) const;
  std::vector<at::Tensor> prefix_tokens(const DenoiserInput& input);
  at::Tensor condition_vector(const DenoiserInput& input);
  at::Tensor run_blocks(at::Tensor x, int64_t prefix, const at::Tensor& key_mask, const at::Tensor& condition,
                        bool dropout);
  at::Tensor run_block(int64_t index, const at::Tensor& x, int64_t prefix, const at::Tensor& key_mask,
                       const at::Tensor& condition, const nn::DropoutKey* dropout);
  void record(const std::string& name, const at::Tensor& value);
  void record_heads(int64_t index, const at::Tensor& normed, int64_t prefix);

  ModelConfig config_;
  ParamList parameters_;
  nn::Linear self_cond_proj_, text_proj1_, text_proj2_;
  nn::TimestepEmbedder t_embedder_, w_embedder_;
  at::Tensor t_tokens_, w_tokens_, mode_tokens_;  // [1, n, H]; undefined where n is 0
  at::Tensor mode_embedding_;                     // [H], adaln_zero only
  nn::Linear final_modulation_;                   // H -> 2 H, adaln_zero only
  std::vector<nn::Block> blocks_;
  std::vector<std::vector<at::Tensor>> block_weights_;  // all of each block
  at::Tensor final_norm_;
  nn::Linear final_linear_;
  at::Tensor proj_kernel_, proj_bias_, unembed_kernel_, unembed_bias_;
  nn::RopeTable rope_;
  std::optional<nn::DropoutKey> dropout_;
  bool bfloat16_blocks_ = false, recompute_ = false;
  TensorMap* trace_ = nullptr;
};

}  // namespace elf
