// From latents to token ids: one forward at t = 1 in decode mode, the likeliest token of every position, the
// target's part, the end. V: vocabulary of the network, which may be larger than the tokenizer's.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "elf/sample/sampler.h"

namespace elf {

// What the network receives for decoding latents [B, L, D]: t = 1, mode 1, an empty self-condition half
// (condition positions included, as published), w where it has SC-CFG tokens.
DenoiserInput decode_input(const SamplerModel& model, const at::Tensor& latents, double w);

// [B, L, D] -> [B, L] int64 on the same device. Logits exist for a slice of the positions at a time (64 MiB),
// never B x L x V at once; so in all functions here.
at::Tensor decode_ids(const SamplerModel& model, const at::Tensor& latents, double w);

// What is asked of a decode besides the likeliest tokens.
struct DecodeRequest {
  double w = 1.0;
  std::vector<int64_t> banned =
      {};                     // ids that may not stand at the positions of `banned_at`; those >= V: ignored
  at::Tensor banned_at = {};  // [B, L] bool; undefined: nowhere
  bool certainty = false;     // fill confidence and entropy
  at::Tensor score = {};      // [B, L] int64 ids whose log-probability is wanted; undefined: none
};

struct Decoded {
  at::Tensor ids;         // [B, L] int64
  at::Tensor confidence;  // [B, L] f32 in (0, 1]: probability of that token; undefined unless asked for
  at::Tensor entropy;     // [B, L] f32 >= 0: of the distribution over V, in nats; undefined unless asked for
  at::Tensor log_prob;    // [B, L] f32 <= 0 of `score`; undefined unless asked for
};
Decoded decode(const SamplerModel& model, const at::Tensor& latents, const DecodeRequest& request);

// Conditional tasks: row b from position lengths[b] on, `keep` positions ([B, L] -> [B, keep]); positions
// beyond L are 0. Any dtype.
at::Tensor target_part(const at::Tensor& ids, const std::vector<int64_t>& lengths, int64_t keep);

// The ids of each row before its first `eos`; the whole row when there is none.
std::vector<std::vector<int64_t>> cut_at_eos(const at::Tensor& ids, int64_t eos);

}  // namespace elf
