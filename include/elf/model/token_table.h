// Static token tables: one latent row a token, in place of a contextual encoder. A folder with
// table.safetensors (`weight` [V, D] f32) and table.json (how it was made).
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace elf {

struct TokenTable {
  at::Tensor weight;    // [V, D] f32
  nlohmann::json made;  // kind, width, vocabulary, tokenizer_hash, dataset_hash, options
};

// Throws Error (usage): files missing or not what they should be, non-finite entries.
TokenTable load_token_table(const std::filesystem::path& folder);

// Writes both files into an existing folder. Throws Error (environment).
void save_token_table(const std::filesystem::path& folder, const TokenTable& table);

}  // namespace elf
