// How likely a model finds given tokens, by denoising them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "elf/sample/sampler.h"

namespace elf {

struct ScoreRequest {
  at::Tensor latents = {};            // [B, L, D] f32 of the tokens (LatentCodec), condition included
  at::Tensor ids = {};                // [B, L] int64 the tokens
  at::Tensor condition = {};          // [B, L] bool: positions that stay clean; undefined: none
  std::vector<int64_t> samples = {};  // [B] names of the rows' noise; equal names get equal noise
  uint64_t seed = 0;
  double w = 1.0;
  std::vector<double> times = {0.1, 0.2, 0.35, 0.5};  // noise levels t, each a share of the score
};

// [B, L] f32, in nats: the mean over the times of log p(token | x_hat(z_t)), z_t = t x + (1 - t) s eps, where
// x_hat is the prediction without self-condition and p the network's decode of it. Two network calls a time.
// No likelihood of the text (x_hat is a mean), but comparable between texts of the same model, and between
// texts of different lengths when all L positions are summed and the model learned its padding.
at::Tensor denoising_log_prob(const SamplerModel& model, const ScoreRequest& request);

}  // namespace elf
