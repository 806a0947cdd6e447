// A model that can run, from a run folder, one of its checkpoints, or a model directory. All three are
// self-contained:
//   config.yaml   tokenizer/   latents/ (encoder or table)   [statistics.json]
//   and the weights: checkpoints/step-N/{model,ema}.safetensors of a run, or model.safetensors +
//   manifest.json of a model directory.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <memory>
#include <string>

#include "elf/config/run_config.h"
#include "elf/flow/objective.h"
#include "elf/model/elf_net.h"
#include "elf/model/latent_codec.h"
#include "elf/text/sentencepiece_tokenizer.h"

namespace elf {

enum class Weights { kEma, kRaw };

struct Model {
  RunConfig config;  // resolved: model.vocab_size and max_length are set
  std::unique_ptr<ElfNet> network;
  std::shared_ptr<const SentencePieceTokenizer> tokenizer;
  std::unique_ptr<LatentCodec> codec;

  std::filesystem::path weights_file;  // what was loaded
  std::string weights_digest;          // of that file
  std::string weights_kind;            // "ema" or "raw"

  NetworkTraits traits() const { return network_traits(config); }
  static NetworkTraits network_traits(const RunConfig& config);
};

// Loads and verifies `path` (manifest hashes, tokenizer and encoder against the configuration). A run folder
// means its newest whole checkpoint. Throws Error (usage): nothing there, ambiguous, damaged, or parts that
// do not fit each other.
Model load_model(const std::filesystem::path& path, at::Device device, Weights weights = Weights::kEma);

// The weights alone of such a place. Throws Error (usage).
TensorMap load_weights(const std::filesystem::path& path, Weights weights = Weights::kEma);

// Copies tokenizer, latent source and statistics of `config` into `folder` and writes config.yaml there,
// pointing at the copies. `config` must be resolved. Used for run folders and model directories. Throws
// Error.
void write_model_parts(const std::filesystem::path& folder, const RunConfig& config);

}  // namespace elf
