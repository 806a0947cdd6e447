// `model:` the sizes of the network (docs/ALGORITHM.md section 2; names as in the published configurations).
#pragma once

#include <cstdint>
#include <string>

namespace elf {

// What the denoise head gives, z being t x + (1 - t) n with noise n: x | v = x - n | epsilon = n. Losses and
// guidance are in velocities for all three.
enum class Prediction { kX, kV, kEpsilon };

// How t, w and the mode reach the network: in_context: prefix tokens | adaln_zero: scales, shifts and gates
// of every block, all zero at the start (Peebles and Xie, 2023)
enum class Conditioning { kInContext, kAdaLnZero };

struct ModelConfig {
  std::string preset;  // "" or a name of model_presets(): fills depth, hidden_size and num_heads; other keys
                       // win over it
  int64_t depth = 12;  // transformer blocks
  int64_t hidden_size = 768;             // H
  int64_t num_heads = 12;                // divides hidden_size
  int64_t latent_dim = 512;              // D, the encoder's width
  int64_t bottleneck_dim = 128;          // width between latents and H
  int64_t vocab_size = 0;                // V; 0 = that of the tokenizer, extra ids included (T5: 32100)
  int64_t max_length = 0;                // L, longest sequence; 0 = that of the dataset
  double mlp_ratio = 4.0;                // SwiGLU inner width = int(int(H * mlp_ratio) * 2 / 3)
  int64_t num_time_tokens = 4;           // prefix tokens that carry t
  int64_t num_self_cond_cfg_tokens = 4;  // prefix tokens that carry w; 0 = the network has no SC-CFG input
  int64_t num_model_mode_tokens = 4;     // prefix tokens that carry the mode
  Conditioning conditioning = Conditioning::kInContext;  // adaln_zero has no prefix; the counts above then
                                                         // only tell whether w and the mode are given at all
  Prediction prediction = Prediction::kX;
  double dropout = 0.0;  // in blocks depth/4 <= i < depth/4*3, on attention projection and SwiGLU product

  // Tokens before the data in the sequence; w is given.
  int64_t num_prefix_tokens() const {
    if (conditioning == Conditioning::kAdaLnZero) return 0;
    return num_time_tokens + num_self_cond_cfg_tokens + num_model_mode_tokens;
  }

  bool operator==(const ModelConfig&) const = default;
};

}  // namespace elf
