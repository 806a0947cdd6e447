// The training objective (algorithm.md section 3): both branches over a mixed batch, as a pure function of (batch, draws, weights).
#pragma once

#include <ATen/core/Tensor.h>

#include "elf/config/flow_config.h"
#include "elf/flow/denoiser.h"
#include "elf/flow/draws.h"

namespace elf {

struct ObjectiveInput {
  at::Tensor latents;     // [B, L, D] f32 normalised encoder outputs x, before label drop
  at::Tensor ids;         // [B, L] int64: targets of the cross-entropy
  at::Tensor valid_mask;  // [B, L] bool
  at::Tensor cond_mask;   // [B, L] bool
};

struct Loss {
  at::Tensor total;         // scalar with gradient: (sum CE + sum L2) / positions
  at::Tensor ce_sum;        // scalar, detached: sums over the loss positions of decode / denoise rows
  at::Tensor l2_sum;
  at::Tensor ce_positions;  // scalar: how many those are
  at::Tensor l2_positions;
  at::Tensor correct;       // scalar: decode positions whose argmax is the token
};

// What the network can take, by its configuration.
struct NetworkTraits {
  bool self_cond = true;  // runs with a self-condition half (self_cond_prob > 0)
  bool cfg_tokens = true; // has SC-CFG tokens: receives w; training-time guidance applies (with self_cond)
  bool dropout = false;   // then the guidance target needs a forward of its own, without dropout
};

// The loss of a micro-batch. `positions` divides the sums: the loss positions of the whole optimiser step, over micro-batches and ranks
// (0 = those of this batch, at least 1). Work is done for the rows that need it only: the no-gradient forward on denoise rows with
// the coin, each head on the rows of its branch.
Loss objective(Denoiser& network, const NetworkTraits& traits, const ObjectiveInput& input, const StepDraws& draws, const FlowConfig& config,
               double positions = 0);

// [B, L] bool: pad_token pad: valid non-condition positions; eos: all non-condition positions.
at::Tensor loss_mask(const ObjectiveInput& input, PadToken pad_token);

}  // namespace elf
