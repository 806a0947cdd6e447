// From latents to token ids: one forward at t = 1 in decode mode, the likeliest token of every position, the
// target's part, the end.
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
// never B x L x V at once.
at::Tensor decode_ids(const SamplerModel& model, const at::Tensor& latents, double w);

// Conditional tasks: row b from position lengths[b] on, `keep` positions ([B, L] -> [B, keep]); positions
// beyond L are 0.
at::Tensor target_part(const at::Tensor& ids, const std::vector<int64_t>& lengths, int64_t keep);

// [B, L]: everything from the first `eos` of a row on becomes `pad`.
at::Tensor pad_from_eos(const at::Tensor& ids, int64_t eos, int64_t pad);

// The ids of each row before its first `eos`; the whole row when there is none.
std::vector<std::vector<int64_t>> cut_at_eos(const at::Tensor& ids, int64_t eos);

}  // namespace elf
