// The golden networks of golden/elf_tiny: full, nocfg, oddprefix.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <string>

#include "elf/config/model_config.h"
#include "elf/model/elf_net.h"
#include "support/golden.h"

namespace elf::test {

inline ModelConfig tiny_config(const std::string& network) {
  const nlohmann::json dims = golden_json("elf_tiny/config.json").at(network).at("dims");
  ModelConfig config;
  config.depth = dims.at("depth");
  config.hidden_size = dims.at("hidden_size");
  config.num_heads = dims.at("num_heads");
  config.latent_dim = dims.at("text_encoder_dim");
  config.bottleneck_dim = dims.at("bottleneck_dim");
  config.vocab_size = dims.at("vocab_size");
  config.max_length = dims.at("max_length");
  config.mlp_ratio = dims.at("mlp_ratio");
  config.num_time_tokens = dims.at("num_time_tokens");
  config.num_self_cond_cfg_tokens = dims.at("num_self_cond_cfg_tokens");
  config.num_model_mode_tokens = dims.at("num_model_mode_tokens");
  return config;
}

inline TensorMap tiny_weights(const std::string& network) {
  return read_safetensors(
      golden("elf_tiny/params" + (network == "full" ? "" : "_" + network) + ".safetensors"));
}

inline std::unique_ptr<ElfNet> tiny_network(const std::string& network) {
  auto net = std::make_unique<ElfNet>(tiny_config(network), at::kCPU);
  net->load(tiny_weights(network));
  return net;
}

}  // namespace elf::test
