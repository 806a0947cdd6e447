// The training objective (docs/ALGORITHM.md section 3): both branches over a mixed batch, as a pure function
// of (batch, draws, weights).
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
  at::Tensor total;   // scalar with gradient: (sum CE + sum L2) / positions
  at::Tensor ce_sum;  // scalar, detached: sums over the loss positions of decode / denoise rows
  at::Tensor l2_sum;
  at::Tensor ce_positions;  // scalar: how many those are
  at::Tensor l2_positions;
  at::Tensor correct;  // scalar: decode positions whose argmax is the token
};

// What the network can take, by its configuration.
struct NetworkTraits {
  bool self_cond = true;   // runs with a self-condition half (self_cond_prob > 0)
  bool cfg_tokens = true;  // has SC-CFG tokens: receives w; training-time guidance applies (with self_cond)
  bool dropout = false;    // then the guidance target needs a forward of its own, without dropout
  int64_t vocab_size = 0;  // V: the vocabulary head runs on pieces of positions such that no [positions, V]
                           // grows large; 0 = in one piece
};

// The loss of a micro-batch. `positions` divides the sums: the loss positions of the whole optimiser step,
// over micro-batches and ranks (0 = those of this batch, at least 1). Work is done only where it matters, and
// equals the plain form (every forward on every row) to rounding:
// - the no-gradient prediction x_u is made for denoise rows with the coin;
// - one forward with gradients over the mixed batch; each head runs on the loss positions of its branch;
// - v_c of the guidance target is the stop-gradient of v_hat; with dropout it is a no-gradient forward of
//   those rows without dropout (x_u too is made without dropout).
// A batch without loss positions gives a total of 0 that can still be differentiated. Weights that took no
// part have no gradient (undefined, not zero): the decode head and mode tokens' rows of an all-denoise batch,
// the denoise head of an all-decode one, self_cond_proj without self-conditioning. Reads the row indices on
// the host: on a GPU the draws' `decoder_row` costs one synchronisation. The latents of label-dropped rows
// must come from the encoder with the dropped mask; here their condition positions become zero.
Loss objective(Denoiser& network, const NetworkTraits& traits, const ObjectiveInput& input,
               const StepDraws& draws, const FlowConfig& config, double positions = 0);

// Throws Error (usage) naming the first tensor whose shape does not fit.
void check_objective(const ObjectiveInput& input, const StepDraws& draws);

// [B, L] bool: pad_token pad: valid non-condition positions; eos: all non-condition positions.
at::Tensor loss_mask(const ObjectiveInput& input, PadToken pad_token);

}  // namespace elf
