// Dimensions of a T5 and its config.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace elf {

struct T5Config {
  int64_t vocab_size = 32128;  // rows of the embedding table
  int64_t d_model = 512;       // D, the width of the latents
  int64_t d_kv = 64;           // width of a head; num_heads * d_kv need not be d_model
  int64_t d_ff = 2048;
  int64_t num_layers = 6;  // of the encoder
  int64_t num_decoder_layers = 6;
  int64_t num_heads = 8;
  int64_t num_buckets = 32;  // relative positions: buckets, and where the last one begins
  int64_t max_distance = 128;
  double eps = 1e-6;      // of RMSNorm
  bool gated = false;     // false: ReLU; true: gated GELU, tanh form (T5 v1.1, Flan)
  bool tied_head = true;  // vocabulary head = embedding table / sqrt(D); false: a matrix of its own

  bool operator==(const T5Config&) const = default;
};

// t5-nano, t5-tiny, t5-mini, t5-small, t5-base, t5-large. Throws Error (usage) naming the known ones.
T5Config t5_preset(const std::string& name);
const std::vector<std::string>& t5_preset_names();

// Reads a Hugging Face config.json. Throws Error (usage) naming file and key: no T5 (UMT5 has a bias table
// per block, which is not supported), another activation, a missing or non-positive size.
T5Config read_t5_config(const std::filesystem::path& file);

// The keys that transformers reads for a T5ForConditionalGeneration.
nlohmann::json t5_config_json(const T5Config& config);

}  // namespace elf
