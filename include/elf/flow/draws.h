// Every random number of a training step, drawn first: what follows is a pure function of (batch, draws,
// weights). The raw numbers are kept (standard normals, uniforms), so that those of a golden file can be put
// in their place.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "elf/config/flow_config.h"

namespace elf {

struct StepDraws {
  at::Tensor time;         // [B] standard normal (logit_normal) or uniform in [0, 1) (uniform)
  at::Tensor eps;          // [B, L, D] noise of the denoise branch, standard normal
  at::Tensor decoder_row;  // [B] bool: this row is in decode mode
  at::Tensor p_normal;     // [B, L] standard normal: p = sigmoid(mean + std n)
  at::Tensor decoder_eps;  // [B, L, D] noise of the decode branch before its scale, standard normal
  at::Tensor self_cond;    // [B] uniform: coin = (value < self_cond_prob)
  at::Tensor w;            // [B] uniform: place of the SC-CFG scale
  at::Tensor label_drop;   // [B] bool: the condition of this row is dropped
  at::Tensor substeps =
      {};  // [B, n - 1] raw times of a teacher's n steps (distillation.h); undefined elsewhere
  at::Tensor decoder_mask = {};  // [B, L] bool: tokens that the decode branch does not see; undefined: none
};

struct StepShape {
  int64_t length;      // L
  int64_t latent_dim;  // D
};

// Draws of the rows `samples` of optimiser step `step` (their global index in the step, so any split of the
// step gives the same numbers). The noise of the branch that a row does not take is left at zero: eps of
// decode rows, p_normal and decoder_eps of denoise rows. branch: per_step: every row takes the branch of one
// draw of the step. label_drop_prob 0: no row is dropped, nothing is drawn. Tensors on the CPU; to(draws,
// device) moves them.
StepDraws draw_step(const FlowConfig& config, const StepShape& shape, uint64_t seed, int64_t step,
                    const std::vector<int64_t>& samples);
StepDraws to(const StepDraws& draws, at::Device device);

}  // namespace elf
