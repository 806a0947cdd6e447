// A model that can run, from a run folder, one of its checkpoints, or a model directory. All three are
// self-contained:
//   config.yaml   tokenizer/   latents/ (encoder or table)   [statistics.json]   [decoder/]
// and the weights: of a run checkpoints/step-N/{model,ema}.safetensors, in a model directory
//   model.safetensors   [raw.safetensors]   model.json (format, version, hashes)   manifest.json
// decoder/ is a model directory. Loading verifies: sizes and digests of the manifest, the version, that the
// parts fit each other.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <memory>
#include <string>

#include "elf/config/run_config.h"
#include "elf/flow/objective.h"
#include "elf/model/elf_net.h"
#include "elf/model/latent_codec.h"
#include "elf/model/two_stage.h"
#include "elf/model/weight_precision.h"
#include "elf/text/sentencepiece_tokenizer.h"

namespace elf {

enum class Weights { kEma, kRaw };  // the averages, which sampling uses, or what was trained

// Configuration and network alone: all that running the network on given tensors needs.
struct LoadedNetwork {
  RunConfig config;  // resolved: model.vocab_size and max_length are set
  std::unique_ptr<ElfNet> network;
  std::filesystem::path weights_file;  // what was loaded
  std::string weights_digest;          // of that file
  std::string weights_kind;            // "ema" or "raw"
};

// Parts of one model. Not for two threads at once, as its network is not; two threads may load it twice.
struct Model : LoadedNetwork {
  std::shared_ptr<const SentencePieceTokenizer> tokenizer;
  std::unique_ptr<LatentCodec> codec;

  std::unique_ptr<ElfNet> decoder;              // latents.decoder; null: the network decodes by itself
  std::string decoder_digest;                   // of its weights; "": none
  std::unique_ptr<TwoStageDenoiser> two_stage;  // both as one
  // What samples: the network, or the two.
  Denoiser& denoiser() const {
    if (two_stage) return *two_stage;
    return *network;
  }

  NetworkTraits traits() const { return network_traits(config); }
  static NetworkTraits network_traits(const RunConfig& config);
};

// Loads and verifies `path`. A run folder means its newest whole checkpoint. A model directory with one set
// of weights gives that set when kEma is asked for, whatever it is (`weights_kind` tells). Throws Error
// (usage): nothing there, ambiguous, damaged, made by a later version, or parts that do not fit each other;
// for load_model also a model directory without tokenizer or encoder.
LoadedNetwork load_network(const std::filesystem::path& path, at::Device device,
                           Weights weights = Weights::kEma);
Model load_model(const std::filesystem::path& path, at::Device device, Weights weights = Weights::kEma);

// The network that `config.latents.decoder` names, which reads tokens off in place of the model's own decode
// branch. Throws Error (usage) as load_model, and unless it decodes latents of this kind and size to tokens
// of as many.
LoadedNetwork load_decoder(const RunConfig& config, const LatentCodec& codec, at::Device device);

// The weights alone, float32 on the CPU. Throws Error (usage) as load_network.
TensorMap load_weights(const std::filesystem::path& path, Weights weights = Weights::kEma);

// The name of the checkpoint that a run's `checkpoints/latest` points to; "" where there is none. Nothing is
// verified.
std::string latest_checkpoint(const std::filesystem::path& run);

// All weights of a run's newest checkpoint, a checkpoint or a model directory, float32 on the CPU.
struct StoredModel {
  RunConfig config;  // paths of tokenizer and latents are absolute; empty where there is none
  TensorMap ema, raw;
  int64_t step = -1;  // -1: not known
};
StoredModel read_stored_model(const std::filesystem::path& path);

// Writes the files of a model directory into `folder`, an empty or new one (an AtomicFolder's): the averages,
// where there are any, as model.safetensors and the raw weights as raw.safetensors; else the raw weights as
// model.safetensors. Tokenizer, encoder or table and statistics are copied; without an encoder model.json
// still holds `encoder_digest`, when that is not empty. Paths of datasets are left out of the configuration.
// Throws Error (usage) when the parts do not fit each other.
struct ModelDirOptions {
  WeightPrecision precision = WeightPrecision::kFloat32;
  std::string encoder_digest;
  std::string source;  // where the weights came from, for the reader of model.json
};
void write_model_dir(const std::filesystem::path& folder, const StoredModel& model,
                     const ModelDirOptions& options);

// Copies tokenizer, latent source, statistics and decoder of `config` into `folder` and writes config.yaml
// there, pointing at the copies. `config` must be resolved. Used for run folders and model directories.
// Throws Error.
void write_model_parts(const std::filesystem::path& folder, const RunConfig& config);

}  // namespace elf
