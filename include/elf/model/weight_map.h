// The one table of the network's weights: names as in the published checkpoints, shapes, roles, initial
// values, in published module order.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "elf/config/model_config.h"
#include "elf/nn/init.h"
#include "elf/tensor/safetensors.h"

namespace elf {

struct WeightSpec {
  std::string name;  // "blocks.0.attn.qkv.weight"
  std::vector<int64_t> shape;
  nn::Init init;
  int64_t fan_in =
      0;  // matrices only, by meaning: a Linear's weight is stored [out, in], the two bare kernels [in, out]
  int64_t fan_out = 0;
};

// Throws Error (usage) when sizes do not fit together: heads that do not divide H, odd head width, V or L not
// set.
std::vector<WeightSpec> weight_specs(const ModelConfig& config);

// Number of weights; nothing is allocated.
int64_t parameter_count(const ModelConfig& config);

// Throws Error (usage) naming `origin` and, all at once, every tensor of `weights` that is missing,
// unexpected or of another shape than `config` has.
void require_weights(const ModelConfig& config, const TensorMap& weights, const std::string& origin);

// The name without the prefixes that wrappers of the published code put before it ("module.", "_orig_mod.",
// in any order and number).
std::string published_name(const std::string& name);

// The map with every name stripped so. Throws Error (usage) when two names become one.
TensorMap published_names(const TensorMap& weights);

}  // namespace elf
