// A latent source whose outputs are read from a cache where the cache has them.
#pragma once

#include <memory>

#include "elf/data/dataset.h"
#include "elf/data/latent_cache.h"
#include "elf/model/latent_codec.h"

namespace elf {

// Encodes as `codec` does, but takes the rows that `cache` has from there; the rest (validation, rows whose
// condition is dropped) is encoded. Throws Error (usage) naming both when the cache was made with another
// encoder, dtype or width.
class CachedCodec final : public LatentCodec {
 public:
  CachedCodec(std::unique_ptr<LatentCodec> codec, LatentCache cache);

  at::Tensor encode(const at::Tensor& ids, const at::Tensor& mask) override;
  at::Tensor normalise(const at::Tensor& raw) const override { return codec_->normalise(raw); }
  int64_t dim() const override { return codec_->dim(); }
  int64_t vocabulary() const override { return codec_->vocabulary(); }
  std::string source_digest() const override { return codec_->source_digest(); }
  std::string digest() const override { return codec_->digest(); }
  std::string tokenizer_hash() const override { return codec_->tokenizer_hash(); }
  at::Tensor token_table() const override { return codec_->token_table(); }

  int64_t rows_read() const { return read_; }  // from the cache, so far
  int64_t rows_encoded() const { return encoded_; }

 private:
  std::unique_ptr<LatentCodec> codec_;
  LatentCache cache_;
  int64_t read_ = 0, encoded_ = 0;
};

// The latent source of a training run: that of make_latent_codec, with `latents.cache` where one is named.
// Throws Error (usage) naming both when the cache is of another dataset than `train`, another length or
// another pad id than the run's.
std::unique_ptr<LatentCodec> make_training_codec(const LatentsConfig& config, const DatasetInfo& train,
                                                 int64_t length, int64_t pad_id, at::Device device);

}  // namespace elf
