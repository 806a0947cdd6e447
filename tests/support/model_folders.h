// Small models on disk: the golden network with tokenizer and table, as `elf-convert import` makes them.
#pragma once

#include <filesystem>

#include "elf/config/published_config.h"
#include "elf/model/model_dir.h"
#include "elf/model/token_table.h"
#include "support/golden.h"
#include "support/tiny_networks.h"

namespace elf::test {

// A table of the golden networks' width with a row for each id of the golden tokenizer.
inline void write_tiny_table(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  save_token_table(folder, {gaussian_table(520, 32, 3), {{"kind", "gaussian"}}});
}

// A network of golden sizes whose vocabulary is that of the golden tokenizer (520 ids), with its own weights.
inline StoredModel tiny_model(const std::filesystem::path& table) {
  StoredModel model;
  model.config.model = tiny_config("full");
  model.config.model.vocab_size = 520;
  model.config.data.max_length = model.config.model.max_length;
  model.config.data.tokenizer = golden("tokenizer/spiece.model").string();
  model.config.latents = {.source = LatentSource::kTable, .path = table.string(), .mean = 0, .std = 1};
  model.config.sampling.steps = 3;
  ElfNet net(model.config.model, at::kCPU);
  net.initialise(7);
  for (const auto& [name, tensor] : net.state()) model.raw[name] = tensor.clone();
  net.initialise(8);
  for (const auto& [name, tensor] : net.state()) model.ema[name] = tensor.clone();
  model.step = 12;
  return model;
}

}  // namespace elf::test
