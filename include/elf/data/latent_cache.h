// Encoder outputs of a dataset's rows, computed once (elf-prepare latents) and read in training.
//
//   /keys     [N] uint64: what the encoder saw (latent_keys)
//   /latents  [N * L * D] float32 or uint16 (the bits of bfloat16): raw outputs, padding included
//   attributes of /:
//     format ("elf-latents"), format_version, rows, length, dim, pad_id, encoder (digest), dtype, data_hash,
//     and complete = 1, written last.
// A row is found by what the encoder saw, not by its number: equal rows are stored once, and whatever is not
// there (a condition dropped from the target's view, say) is simply encoded.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace elf {

struct LatentCacheInfo {
  std::filesystem::path path;
  int64_t rows = 0, length = 0, dim = 0;  // N, L, D
  int64_t pad_id = 0;                     // the id that fills rows up to L
  std::string encoder;                    // digest of the encoder, LatentCodec::source_digest()
  std::string dtype;      // "float32" or "bfloat16": of the encoder's arithmetic and of storage
  std::string data_hash;  // of the dataset
};

// One key a row: a hash of the ids and of who sees whom. ids [B, L] int64, mask [B, L, L] bool as
// encoder_mask() makes it, on any device. Of a mask only how many positions each one sees and is seen by
// count, which tells all masks of encoder_mask() apart.
std::vector<uint64_t> latent_keys(const at::Tensor& ids, const at::Tensor& mask);

// Bytes of N rows on disk.
int64_t latent_cache_bytes(int64_t rows, int64_t length, int64_t dim, const std::string& dtype);

// Whether this is an HDF5 file with such a cache, whole or not; false also for what cannot be opened.
bool is_latent_cache(const std::filesystem::path& path);

// Read-only; safe to use from several threads.
class LatentCache {
 public:
  // Throws Error (usage) naming the file and what is wrong with it.
  static LatentCache open(const std::filesystem::path& path);

  const LatentCacheInfo& info() const;
  bool contains(uint64_t key) const;
  // [n, L, D] f32 on the CPU: the rows of n keys, all of which must be there.
  at::Tensor read(const std::vector<uint64_t>& keys) const;
  // Reads every row. Throws Error (usage) for the first that is damaged: a wrong checksum, or not finite.
  void verify() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// Writes a cache row by row; the file appears under its name by finish() only.
class LatentCacheWriter {
 public:
  // Of `info`: everything but the number of rows.
  LatentCacheWriter(const std::filesystem::path& path, const LatentCacheInfo& info);
  ~LatentCacheWriter();

  // latents [L, D] f32; nothing happens when the key is there already. Throws Error (numerical) for latents
  // that are not finite.
  void add(uint64_t key, const at::Tensor& latents);
  LatentCacheInfo finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace elf
