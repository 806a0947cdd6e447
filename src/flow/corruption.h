// What both objectives give the network in the decode branch (docs/ALGORITHM.md section 3).
#pragma once

#include <ATen/core/Tensor.h>

#include "elf/config/flow_config.h"
#include "elf/flow/draws.h"

namespace elf {

// x [B, L, D] with p x + (1 - p) s_dec eps, p drawn for each token; p = 0 for masked tokens
// (draws.decoder_mask), of which only noise is seen. The published code corrupts the condition as well,
// although sampling decodes with a clean one; decode_condition: clean leaves it as it is. cond_mask [B, L].
at::Tensor corrupted_latents(const at::Tensor& x, const at::Tensor& cond_mask, const StepDraws& draws,
                             const FlowConfig& config);

}  // namespace elf
