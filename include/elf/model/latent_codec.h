// From token ids to latents: x = (e - mean) / std, with e from a frozen T5 encoder, a frozen table with a row
// a token, or a table that is trained (docs/ALGORITHM.md section 1).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "elf/config/latents_config.h"

namespace elf {

// For one thread at a time: an encoder keeps tables between calls.
class LatentCodec {
 public:
  virtual ~LatentCodec() = default;

  // ids [B, L] int64, mask [B, L, L] bool (encoder_mask of elf/data/masks.h), on any device -> latents [B, L,
  // D] f32 on the codec's device. No gradients, except to a learned table. A table does not look at the mask
  // (it may be undefined): its rows depend on nothing but the token. Ids that lie on the CPU are checked:
  // throws Error (usage) for one outside [0, vocabulary()).
  virtual at::Tensor encode(const at::Tensor& ids, const at::Tensor& mask) = 0;

  // (raw - mean) / std of raw outputs of the source [..., D], as encode() returns them; here mean 0 and
  // std 1.
  virtual at::Tensor normalise(const at::Tensor& raw) const { return raw; }

  virtual int64_t dim() const = 0;  // D
  virtual int64_t vocabulary()
      const = 0;  // ids it has rows for; may exceed the tokenizer's (T5: 32128 rows, 32100 ids)

  // Names the weights (and, unless float32, the arithmetic) alone, as statistics of them do.
  virtual std::string source_digest() const { return digest(); }

  // Names weights and normalisation: equal digests, equal latents.
  virtual std::string digest() const = 0;

  // Of the tokenizer whose ids it was made for; "" where that is not written down (an encoder that others
  // made).
  virtual std::string tokenizer_hash() const { return {}; }

  // A learned source reads the unembedding [D, V] of the network in hand, tied with it; others do not look.
  // Whoever puts a network beside a codec tells it: dim() and vocabulary() of a learned source are 0 before.
  virtual void bind(const at::Tensor& unembedding) { (void)unembedding; }

  // The normalised table [V, D] f32 of a static source, undefined for a contextual one. For initialising the
  // unembedding.
  virtual at::Tensor token_table() const { return {}; }
};

// The source that `config` names, on `device`. Throws Error (usage): folder or file missing, tensors missing
// or of the wrong shape, statistics made with another encoder or of another width, std not positive.
std::unique_ptr<LatentCodec> make_latent_codec(const LatentsConfig& config, at::Device device);

// Rows [..., D] with mean 0 and standard deviation 1 each: what a learned table is kept at.
at::Tensor normalise_rows(const at::Tensor& rows);

// Puts the columns of an unembedding [D, V] back to that, in place and without gradients.
void renormalise_unembedding(at::Tensor unembedding);

// Throws Error (usage) naming both unless the source fits this tokenizer: as many rows as it has ids, and
// made for it, where it says for which. `path` is where the source lies.
void require_tokenizer(const LatentCodec& codec, const std::string& path, const std::string& tokenizer_hash,
                       int64_t tokenizer_size);

}  // namespace elf
