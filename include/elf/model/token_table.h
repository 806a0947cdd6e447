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

// Independent normal rows [V, D], each with mean 0 and standard deviation 1; row i depends on (seed, i, D)
// only. width >= 2.
at::Tensor gaussian_table(int64_t vocabulary, int64_t width, uint64_t seed);

// [V, D] f32: `rows` centred (their mean over the rows taken off) and scaled to norm sqrt(D), hence mean 0
// and mean square 1 over the table. Zero rows (tokens never seen) count for nothing and get Gaussian rows
// instead, so that every token can be told from the others.
at::Tensor complete_table(const at::Tensor& rows, uint64_t seed);

}  // namespace elf
