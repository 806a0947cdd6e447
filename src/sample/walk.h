// One walk from noise to data as the step of a sampler sees it (samplers.h): where it is, its noise, and
// predictions with guidance, condition and known latents in place. Shapes: B rows, L positions, D latent
// width.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "elf/config/schedules.h"
#include "elf/sample/sampler.h"

namespace elf {

// Where the samples stand, and what brought them there.
struct SamplerState {
  at::Tensor z, x_hat;  // [B, L, D]
  at::Tensor v = {};    // [B, L, D] velocity of the step before, of samplers that keep it
};

class SamplerWalk {
 public:
  // Keeps references to all but the conditions. Throws Error (usage) for shapes that do not fit.
  SamplerWalk(const SamplerModel& model, const SamplingConfig& config, const SamplerDraws& draws,
              const SampleConditions& conditions);

  const SamplerModel& model;
  const SamplingConfig& config;

  SamplerState start() const;
  int64_t steps() const { return static_cast<int64_t>(draws_.times.size()) - 1; }
  double time(int64_t k) const { return draws_.times[k]; }
  at::Tensor times(int64_t k) const;  // [B], all of them time(k)
  at::Tensor noise(int64_t k) const { return draws_.step_noise(k); }

  // Condition positions hold the clean condition.
  at::Tensor pin(const at::Tensor& z) const;
  // New latents [B, L, D] of the known positions.
  void know(const at::Tensor& latents);
  // The prediction [B, L, D]: all forwards that guidance asks for, as one batch. z, self_cond [B, L, D] with
  // the condition in place; t [B], all of it `time`. `first`: self_cond is the empty half.
  at::Tensor x_hat(const at::Tensor& z, const at::Tensor& self_cond, const at::Tensor& t, double time,
                   bool first);

  int64_t forwards() const { return forwards_; }
  int64_t rows() const { return rows_; }

 private:
  at::Tensor no_self_cond() const { return mask_.defined() ? clean_ : empty_; }
  std::vector<at::Tensor> forward(const std::vector<at::Tensor>& states,
                                  const std::vector<at::Tensor>& halves, const at::Tensor& t, double w);

  const SamplerDraws& draws_;
  ScaleSchedule w_, cfg_;
  at::Tensor empty_;               // [B, L, D] zeros
  at::Tensor mask_;                // [B, L] condition positions; undefined: none
  at::Tensor clean_;               // [B, L, D] the condition, zero elsewhere
  at::Tensor known_, known_mask_;  // [B, L, D], [B, L] of KnownLatents; undefined: none
  int64_t forwards_ = 0, rows_ = 0;
};

}  // namespace elf
