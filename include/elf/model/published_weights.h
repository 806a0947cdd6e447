// Weights of the published implementation: checkpoints of torch.save, bare state dicts, safetensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "elf/config/model_config.h"
#include "elf/tensor/safetensors.h"

namespace elf {

// Names are without wrapper prefixes ("module.", "_orig_mod."), values float32.
struct PublishedWeights {
  TensorMap raw, ema;             // either may be empty, not both
  int64_t step = -1, epoch = -1;  // -1: the file does not say
  std::string skipped;            // what in the file was no plain data: "argparse.Namespace (1)"; "" mostly
};

// A .pt file with the weights under `params` (or model, state_dict, ...) and their averages under
// `ema_params1` (or ema, ...), or one that is itself a state dict; or a safetensors file of one set of
// weights, which then is `raw`. Nothing of the file is run. Throws Error (usage) naming file and entry.
PublishedWeights read_published_weights(const std::filesystem::path& path);

// The same layout, for torch.load: params, ema_params1 (where there are averages), step, epoch. opt_state and
// lr_scheduler are empty dictionaries: the published code resumes from the weights. Throws Error
// (environment).
void write_published_weights(const std::filesystem::path& path, const PublishedWeights& weights);

// What the tensors' shapes tell of the network: every size but max_length, which is taken from `known`, as
// are dropout and mlp_ratio where it fits. Throws Error (usage) naming `origin` and the tensor: missing or of
// a shape that no network has.
ModelConfig dimensions_of(const TensorMap& weights, const ModelConfig& known, const std::string& origin);

}  // namespace elf
