// From noise to latents (docs/ALGORITHM.md section 4). Sample i is a function of (network, settings, seed, i)
// only: neither the batch it is in nor its neighbours change it, up to the rounding of matrix products of
// another size. Shapes: B rows, L positions, D latent width. Runs without recording gradients (NoGradGuard,
// not InferenceMode: a network may keep tables that training uses later).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "elf/config/sampling_config.h"
#include "elf/flow/denoiser.h"
#include "elf/flow/objective.h"

namespace elf {

// The network and what the flow was trained with.
struct SamplerModel {
  Denoiser& network;
  NetworkTraits traits;
  double noise_scale;  // s of the denoise branch
  double t_eps;        // floor of 1 - t
};

// Positions whose latents are known, but which ride the path from noise to data with all others: there the
// known latents stand in the place of the prediction.
struct KnownLatents {
  at::Tensor latents = {};  // [B, L, D] f32; only masked positions are read
  at::Tensor mask = {};     // [B, L] bool; undefined: none
  // Asked after every step but the last for the known latents of the next, given the prediction [B, L, D];
  // empty: they stay. For encoders whose latents depend on their neighbours.
  std::function<at::Tensor(const at::Tensor& x_hat)> refresh = {};
};

// Known latents that every step keeps. All undefined: unconditional.
struct SampleConditions {
  at::Tensor latents = {};  // [B, L, D] f32 clean condition; only masked positions are read
  at::Tensor mask = {};     // [B, L] bool, true = condition
  KnownLatents known = {};
  bool defined() const { return mask.defined(); }
};

// Every random number of the samples, by index.
struct SamplerDraws {
  std::vector<double> times;  // N + 1 values from 0 to 1 (flow/times.h)
  at::Tensor eps0;            // [B, L, D] f32 standard normal; its device is where sampling runs
  // step -> [B, L, D] standard normal; asked for SDE steps only, never for the last step.
  std::function<at::Tensor(int64_t)> step_noise;
};

// Network calls of a walk of config.steps steps; guidance adds rows to them, not calls. The decode is one more.
int64_t network_calls(const SamplingConfig& config);

// Draws of the samples with these indices, keyed by (config.seed, purpose, step, index).
SamplerDraws draw_sampler(const SamplingConfig& config, const std::vector<int64_t>& samples, int64_t length,
                          int64_t latent_dim, at::Device device = at::kCPU);

// What an observer sees after each step.
struct SamplerStep {
  int64_t index;     // 0 .. N - 1
  double t;          // time reached
  at::Tensor z;      // [B, L, D] state
  at::Tensor x_hat;  // [B, L, D] prediction handed to the next step
};
using StepObserver = std::function<void(const SamplerStep&)>;

struct LatentSamples {
  at::Tensor latents;    // [B, L, D] f32, condition positions hold the condition
  int64_t forwards = 0;  // network calls
  int64_t rows = 0;      // rows summed over the calls: the work, in forwards of one sample
};

// Walks draws.times from noise_scale eps0. config gives sampler kind, gamma, and the scales w (self_cond_cfg)
// and cfg, each at the time of the network call where it has a schedule.
// - Networks with SC-CFG tokens receive w. Those without, but with self-conditioning, are guided explicitly,
//   u + w (c - u): u is the prediction with an empty self-condition half, not asked for at the first step,
//   where both are the same, nor when w = 1.
// - cfg != 1 with a condition: the same rows without condition stand in the same batch,
//   x = x_u + cfg (x_c - x_u).
// - The last step is always an Euler step of the ODE.
// - kHeun asks for two predictions at every other step, the second with the first as its self-condition.
// Throws Error (usage) for draws or conditions whose shapes do not fit.
LatentSamples sample_latents(const SamplerModel& model, const SamplingConfig& config,
                             const SamplerDraws& draws, const SampleConditions& conditions = {},
                             const StepObserver& observer = {});

}  // namespace elf
