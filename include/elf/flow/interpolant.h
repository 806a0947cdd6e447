// The path between noise and data, and everything that raw random numbers become on the way
// (docs/ALGORITHM.md section 3). The one place of each equation. All pure, elementwise, any device.
#pragma once

#include <ATen/core/Tensor.h>

#include "elf/config/flow_config.h"
#include "elf/config/model_config.h"

namespace elf {

// `row` [B] (or [B, L]) with as many axes of size 1 behind as `like` has more: ready to multiply it.
at::Tensor broadcast_rows(const at::Tensor& row, const at::Tensor& like);

// t [B] in [0, 1] from the raw draw [B]: sigmoid(mean + std n), n standard normal (logit_normal), or the draw
// itself (uniform).
at::Tensor training_time(const at::Tensor& raw, const FlowConfig& config);

// w [B] from u [B] uniform in [0, 1): w = (1 + a) exp(u ln((1 + b) / (1 + a))) - 1, log-uniform in 1 + w
// between a and b.
at::Tensor self_cond_scale(const at::Tensor& u, const FlowConfig& config);

// p [B, L] from n [B, L] standard normal: sigmoid(mean + std n), how much of a token's latent the decode
// branch keeps.
at::Tensor corruption_level(const at::Tensor& normal, const FlowConfig& config);

// z = t x + (1 - t) s eps.  x, eps [B, L, D]; t [B]; s > 0. Serves the decode branch too, with p [B, L] in
// the place of t.
at::Tensor mix_noise(const at::Tensor& x, const at::Tensor& t, const at::Tensor& eps, double noise_scale);

// Velocity of an x-prediction or, for the true x, the target: v = (x - z) / max(1 - t, t_eps).  x, z [B, L,
// D] (or [n, D]); t [B] ([n]).
at::Tensor velocity(const at::Tensor& x, const at::Tensor& z, const at::Tensor& t, double t_eps);

// The x that a network's output stands for, n being the noise in z = t x + (1 - t) n:
//   x: the output;  v = x - n: z + (1 - t) v;  epsilon = n: (z - (1 - t) n) / max(t, 0.05).
// The last has a floor because noise says nothing of x at t = 0.  output, z [B, L, D] (or [n, D]); t [B]
// ([n]).
at::Tensor x_from_prediction(Prediction kind, const at::Tensor& output, const at::Tensor& z,
                             const at::Tensor& t);

}  // namespace elf
