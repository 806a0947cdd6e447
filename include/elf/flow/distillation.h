// Progressive distillation (docs/ALGORITHM.md section 5): a student learns to cover in one step what a frozen
// teacher covers in many. All pure: no generator, no state. Shapes: B rows, L positions, D latent width;
// times [B] f32 in [0, 1].
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "elf/config/flow_config.h"
#include "elf/flow/denoiser.h"
#include "elf/flow/draws.h"
#include "elf/flow/objective.h"

namespace elf {

// One round: what the student's step covers and how the teacher walks it.
struct DistillationRound {
  double step_size = 1;       // t_t - t_s: 1 / the student's steps, in (0, 1]
  int64_t teacher_steps = 1;  // n
  TimeDistribution student_schedule = TimeDistribution::kLogitNormal;
  TimeDistribution teacher_schedule = TimeDistribution::kLogitNormal;
};

// The draws of a training step, with `time` by the student's schedule, `substeps` [B, n - 1] by the
// teacher's, and no label drop. Keyed as in draw_step.
StepDraws draw_distillation_step(const FlowConfig& config, const DistillationRound& round,
                                 const StepShape& shape, uint64_t seed, int64_t step,
                                 const std::vector<int64_t>& samples);

// t_s [B] = u max(1 - step_size, 1e-6), u in [0, 1] from the raw draw [B] by the student's schedule.
at::Tensor student_time(const at::Tensor& raw, const DistillationRound& round, const FlowConfig& config);

// [B, n + 1] times of the teacher: t_s, the sorted draws [B, n - 1] put between, t_t.
at::Tensor teacher_times(const at::Tensor& t_s, const at::Tensor& t_t, const at::Tensor& raw,
                         const DistillationRound& round, const FlowConfig& config);

struct WalkStart {
  at::Tensor z;          // [B, L, D] state at t_s
  at::Tensor self_cond;  // [B, L, D] half of the first step; undefined: a network without self-conditioning
  at::Tensor w;          // [B]; undefined without SC-CFG tokens
  at::Tensor clean;      // [B, L, D] the condition; only masked positions are read
  at::Tensor cond_mask;  // [B, L] bool
};
struct Walk {
  at::Tensor z_end;  // [B, L, D] state at t_t
  at::Tensor x_hat;  // [B, L, D] prediction of the last sub-step
};
// Euler steps along `times` [B, n + 1]. Later steps are self-conditioned on the prediction before; condition
// positions stay.
Walk teacher_walk(Denoiser& teacher, const WalkStart& start, const at::Tensor& times, double t_eps);

// The x-prediction whose single Euler step from (z, t_s) ends where the walk ended:
//   x* = z + (1 - t_s) / (t_t - t_s) (z_end - z).
// The walk's own prediction where the span is below 1e-3, and after a single sub-step.
at::Tensor distillation_target(const at::Tensor& z, const at::Tensor& times, const Walk& walk);

// The loss of a micro-batch: squared error of the student's x-prediction to x* in denoise rows, cross-entropy
// in decode rows, each averaged over the row's own loss positions; total = their sum / `rows` (0 = B). In the
// result *_sum are sums of those row means, *_positions count rows, and `correct` sums shares. No label drop;
// draws.label_drop is not read. The teacher runs on the denoise rows only, without gradients and dropout: n +
// self_cond_prob forwards of them.
Loss distillation_objective(Denoiser& student, Denoiser& teacher, const NetworkTraits& traits,
                            const ObjectiveInput& input, const StepDraws& draws,
                            const DistillationRound& round, const FlowConfig& config, double rows = 0);

}  // namespace elf
