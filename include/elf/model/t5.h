// T5 (Raffel et al., 2020): the encoder that makes the latents, and the decoder as far as training an encoder
// by span corruption needs it. Plain tensors and pure forwards in float32. Peculiar to T5: no 1/sqrt(d) in
// the attention; one table of relative position biases per stack, added to the scores of every block; RMSNorm
// without mean or bias; no biases in the linear maps. No dropout. B batch, L length, D d_model, N heads, d
// d_kv, F d_ff.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>
#include <vector>

#include "elf/model/t5_config.h"
#include "elf/optim/parameters.h"

namespace elf {

struct T5Attention {
  at::Tensor q, k, v;  // [N d, D]
  at::Tensor o;        // [D, N d]
};

struct T5Block {
  at::Tensor self_norm;  // [D]
  T5Attention self;
  at::Tensor cross_norm;  // [D], decoder only
  T5Attention cross;      // decoder only
  at::Tensor ff_norm;     // [D]
  at::Tensor wi;          // [F, D], before the activation
  at::Tensor wi_linear;   // [F, D], gated only: act(wi x) * (wi_linear x)
  at::Tensor wo;          // [D, F]
};

struct T5Stack {
  at::Tensor relative_bias;  // [buckets, N]
  std::vector<T5Block> blocks;
  at::Tensor final_norm;  // [D]
};

struct T5Model {
  T5Config config;
  at::Tensor embedding;  // [V, D], of encoder and decoder
  T5Stack encoder;
  T5Stack decoder;  // no blocks when only the encoder was loaded
  at::Tensor head;  // [V, D]; undefined when tied to the embedding

  bool has_decoder() const { return !decoder.blocks.empty(); }
};

// From a Hugging Face folder: config.json and the weights as model.safetensors or pytorch_model.bin, in one
// file or in the shards that an .index.json names. Weights of any floating dtype become float32. Without
// `with_decoder` the decoder's tensors are left out and counted in the log. Throws Error (usage): files
// missing, every missing or mis-shaped tensor by name at once, more than one relative bias table ("per-block
// bias not supported").
T5Model load_t5(const std::filesystem::path& folder, bool with_decoder = false);

// The files of the folder that load_t5 reads, and pretraining.json where there is one: what a copy of the
// encoder needs. Throws Error (usage) as load_t5.
std::vector<std::string> t5_files(const std::filesystem::path& folder);

// Weights drawn as T5's authors do, keyed by `seed`. Requires no gradients yet.
T5Model random_t5(const T5Config& config, uint64_t seed);

// Writes config.json and model.safetensors into an existing folder, with the names that transformers expects.
void save_t5(const std::filesystem::path& folder, const T5Model& model);

// Every weight with its Hugging Face name; sharing the model's tensors.
ParamList t5_params(T5Model& model);
void to_device(T5Model& model, at::Device device);
// float32 or bfloat16; the encoder's arithmetic follows. Throws Error (usage) for float16: T5 overflows in
// it.
void to_dtype(T5Model& model, at::ScalarType dtype);

// Bucket of a relative position (docs/ALGORITHM.md section 1): exact up to a quarter (decoder: half) of the
// buckets, then logarithmic up to max_distance. Bidirectional (encoder): half of the buckets are for keys to
// the right. Causal (decoder): those are bucket 0.
int64_t relative_bucket(int64_t key_minus_query, bool bidirectional, int64_t num_buckets,
                        int64_t max_distance);

// What is added to attention scores: 0 where `mask` ([B, L] of keys or [B, L, L], bool or numbers, non-zero =
// seen) is set, else a number so low that the score vanishes beside it. A row with no visible key thus
// attends to all keys equally, as in the published implementation.
// -> [B, 1, 1 or L, L] f32.
at::Tensor score_mask(const at::Tensor& mask);

// Throws Error (usage) when ids are no [B, L] int64 or, on the CPU, outside the embedding table (on another
// device reading them would stall it).
void check_t5_ids(const at::Tensor& ids, const T5Config& config);

// Vocabulary logits [B, M, V] of a decoder that reads `decoder_ids` [B, M] (int64, causal) and the encoder's
// output `memory` [B, L, D] where memory_mask [B, L] is set.
at::Tensor t5_decode(const T5Model& model, const at::Tensor& decoder_ids, const at::Tensor& memory,
                     const at::Tensor& memory_mask);

// The encoder as a function, with its position biases kept between calls while the weights are frozen. Not
// for two threads at once.
class T5Encoder {
 public:
  explicit T5Encoder(T5Model model) : model_(std::move(model)) {}

  // ids [B, L] int64 on the weights' device; mask undefined (all see all), [B, L] or [B, L, L] -> last hidden
  // state [B, L, D] f32 after the final norm. `hidden`, if given, receives the input of every block.
  // Gradients flow where the weights require them.
  at::Tensor forward(const at::Tensor& ids, const at::Tensor& mask = {},
                     std::vector<at::Tensor>* hidden = nullptr) const;

  const T5Model& model() const { return model_; }
  const T5Config& config() const { return model_.config; }
  std::string digest() const;  // of everything the encoder's output depends on

 private:
  at::Tensor position_bias(int64_t length) const;  // [1, N, L, L]

  T5Model model_;
  mutable at::Tensor bias_;  // of the longest length so far: a shorter one is its upper left corner
};

}  // namespace elf
