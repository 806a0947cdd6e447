#include "elf/flow/distillation.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "corruption.h"
#include "elf/base/error.h"
#include "elf/flow/conditioning.h"
#include "elf/flow/interpolant.h"
#include "elf/flow/solver.h"
#include "elf/tensor/random.h"
#include "vocabulary_loss.h"

namespace elf {
namespace {

constexpr double kSmallestRoom = 1e-6;   // of the draw of t_s, when a step covers everything
constexpr double kVanishingSpan = 1e-3;  // below it the mean velocity is a quotient of rounding errors

FlowConfig with_schedule(const FlowConfig& config, TimeDistribution schedule) {
  FlowConfig changed = config;
  changed.time_schedule = schedule;
  return changed;
}

void check(const ObjectiveInput& input, const StepDraws& draws, const DistillationRound& round) {
  const int64_t batch = input.latents.size(0);
  if (!(round.step_size > 0 && round.step_size <= 1))
    usage_error("distillation: the step size is ", round.step_size, ", expected more than 0 and at most 1");
  if (round.teacher_steps < 1)
    usage_error("distillation: ", round.teacher_steps, " teacher steps, expected at least 1");
  const std::vector<int64_t> wanted = {batch, round.teacher_steps - 1};
  if (round.teacher_steps > 1 &&
      (!draws.substeps.defined() || draws.substeps.sizes() != at::IntArrayRef(wanted)))
    usage_error("distillation: draws.substeps must be ", at::IntArrayRef(wanted));
}

// What the draws make of a batch.
struct Noised {
  at::Tensor x, z;      // [B, L, D] clean latents, and noisy ones at t_s
  at::Tensor t_s, w;    // [B]; w undefined without SC-CFG tokens
  at::Tensor decode;    // [B] bool
  at::Tensor cond;      // [B, L] bool
  DenoiserInput input;  // of the student
};

Noised add_noise(const NetworkTraits& traits, const ObjectiveInput& input, const StepDraws& draws,
                 const DistillationRound& round, const FlowConfig& config) {
  Noised n;
  n.x = input.latents;
  n.cond = input.cond_mask;
  n.decode = draws.decoder_row;
  n.t_s = student_time(draws.time, round, config);
  if (traits.cfg_tokens) n.w = self_cond_scale(draws.w, config);
  n.z = pin_condition(mix_noise(n.x, n.t_s, draws.eps, config.denoiser_noise_scale), n.x, n.cond);
  const at::Tensor corrupted = corrupted_latents(n.x, n.cond, draws, config);
  n.input.z = at::where(broadcast_rows(n.decode, n.z), corrupted, n.z);
  n.input.t = n.t_s.masked_fill(n.decode, 1.0);
  n.input.w = n.w;
  n.input.mode = n.decode.to(at::kFloat);
  n.input.dropout = traits.dropout;
  // Decode rows as well see the clean condition here, unlike in the objective of section 3.
  if (traits.self_cond) n.input.self_cond = pin_condition(at::zeros_like(n.x), n.x, n.cond);
  return n;
}

at::Tensor places_where(const at::Tensor& mask) {
  return mask.flatten().nonzero().reshape({-1});
}

at::Tensor rows_of(const at::Tensor& all, const at::Tensor& rows) {
  return all.defined() ? all.index_select(0, rows) : all;
}

// The student's self-condition half: in denoise rows with the coin the teacher's prediction from an empty
// half.
void self_condition(Denoiser& teacher, Noised& n, const at::Tensor& rows) {
  if (rows.numel() == 0) return;
  DenoiserInput empty;
  empty.z = rows_of(n.z, rows);
  empty.self_cond = rows_of(n.input.self_cond, rows);
  empty.t = rows_of(n.t_s, rows);
  empty.w = rows_of(n.w, rows);
  n.input.self_cond = n.input.self_cond.index_copy(
      0, rows, pin_condition(teacher.x_hat(empty), rows_of(n.x, rows), rows_of(n.cond, rows)));
}

// [rows, L, D] x* of the denoise rows.
at::Tensor targets(Denoiser& teacher, const Noised& n, const at::Tensor& rows, const StepDraws& draws,
                   const DistillationRound& round, const FlowConfig& config) {
  const at::Tensor t_s = rows_of(n.t_s, rows);
  const WalkStart start{rows_of(n.z, rows), rows_of(n.input.self_cond, rows), rows_of(n.w, rows),
                        rows_of(n.x, rows), rows_of(n.cond, rows)};
  const at::Tensor times =
      teacher_times(t_s, t_s + round.step_size, rows_of(draws.substeps, rows), round, config);
  return distillation_target(start.z, times, teacher_walk(teacher, start, times, config.t_eps));
}

}  // namespace

StepDraws draw_distillation_step(const FlowConfig& config, const DistillationRound& round,
                                 const StepShape& shape, uint64_t seed, int64_t step,
                                 const std::vector<int64_t>& samples) {
  FlowConfig student = with_schedule(config, round.student_schedule);
  student.label_drop_prob = 0;
  StepDraws draws = draw_step(student, shape, seed, step, samples);
  if (round.teacher_steps > 1) {
    const Stream stream{seed, Purpose::kTeacherTimes, static_cast<uint64_t>(step)};
    draws.substeps = round.teacher_schedule == TimeDistribution::kUniform
                         ? uniform(stream, samples, {round.teacher_steps - 1})
                         : normal(stream, samples, {round.teacher_steps - 1});
  }
  return draws;
}

at::Tensor student_time(const at::Tensor& raw, const DistillationRound& round, const FlowConfig& config) {
  return training_time(raw, with_schedule(config, round.student_schedule)) *
         std::max(1.0 - round.step_size, kSmallestRoom);
}

at::Tensor teacher_times(const at::Tensor& t_s, const at::Tensor& t_t, const at::Tensor& raw,
                         const DistillationRound& round, const FlowConfig& config) {
  const at::Tensor start = t_s.unsqueeze(1), end = t_t.unsqueeze(1);
  if (round.teacher_steps == 1) return at::cat({start, end}, 1);
  const at::Tensor share =
      std::get<0>(at::sort(training_time(raw, with_schedule(config, round.teacher_schedule)), 1));
  return at::cat({start, start + (end - start) * share, end}, 1);
}

Walk teacher_walk(Denoiser& teacher, const WalkStart& start, const at::Tensor& times, double t_eps) {
  const at::NoGradGuard no_grad;
  Walk walk{start.z, {}};
  DenoiserInput input;
  input.self_cond = start.self_cond;
  input.w = start.w;
  for (int64_t k = 0; k + 1 < times.size(1); ++k) {
    input.z = walk.z_end;
    input.t = times.select(1, k);
    walk.x_hat = pin_condition(teacher.x_hat(input), start.clean, start.cond_mask);
    walk.z_end = pin_condition(euler_step(walk.z_end, walk.x_hat, input.t, times.select(1, k + 1), t_eps),
                               start.clean, start.cond_mask);
    if (input.self_cond.defined()) input.self_cond = walk.x_hat;
  }
  return walk;
}

at::Tensor distillation_target(const at::Tensor& z, const at::Tensor& times, const Walk& walk) {
  if (times.size(1) == 2) return walk.x_hat;
  const at::Tensor t_s = times.select(1, 0), span = times.select(1, -1) - t_s;
  const at::Tensor reach = broadcast_rows((1.0 - t_s) / span, z);
  return at::where(broadcast_rows(span.lt(kVanishingSpan), z), walk.x_hat, z + reach * (walk.z_end - z));
}

Loss distillation_objective(Denoiser& student, Denoiser& teacher, const NetworkTraits& traits,
                            const ObjectiveInput& input, const StepDraws& draws,
                            const DistillationRound& round, const FlowConfig& config, double rows) {
  check_objective(input, draws);
  check(input, draws, round);
  Noised n = add_noise(traits, input, draws, round, config);
  const int64_t batch = n.x.size(0), length = n.x.size(1);
  // Rows and positions are counted before the first forward: counting waits for the device.
  const at::Tensor denoise_row = n.decode.logical_not(), denoise_rows = places_where(denoise_row);
  const at::Tensor coin_rows =
      places_where(draws.self_cond.lt(config.self_cond_prob).logical_and(denoise_row));
  const at::Tensor mask = loss_mask(input, config.pad_token);
  const at::Tensor denoise_at = places_where(mask.logical_and(denoise_row.unsqueeze(1)));
  const at::Tensor decode_at = places_where(mask.logical_and(n.decode.unsqueeze(1)));
  at::Tensor target;  // [B, L, D], zero in decode rows
  {
    const at::NoGradGuard no_grad;
    if (traits.self_cond) self_condition(teacher, n, coin_rows);
    target = at::zeros_like(n.x);
    if (denoise_rows.numel() > 0)
      target = target.index_copy(0, denoise_rows, targets(teacher, n, denoise_rows, draws, round, config));
  }
  const at::Tensor features = student.features(n.input);
  const at::Tensor weight =
      (mask.to(at::kFloat) / mask.sum(1, true).clamp_min(1)).flatten();  // [B L]: row means
  const std::vector<at::Tensor> chosen = features.reshape({batch * length, features.size(-1)})
                                             .index_select(0, at::cat({denoise_at, decode_at}))
                                             .split_with_sizes({denoise_at.numel(), decode_at.numel()});
  Loss loss;
  loss.l2_positions = at::full({}, denoise_rows.numel(), features.options());
  loss.ce_positions = at::full({}, batch - denoise_rows.numel(), features.options());
  loss.ce_sum = loss.l2_sum = loss.correct = at::zeros({}, features.options());
  std::vector<at::Tensor> terms;
  if (denoise_at.numel() > 0 ||
      decode_at.numel() == 0) {  // with neither: an empty sum that keeps the graph whole
    const at::Tensor x_hat =
        student.x_from_output(student.denoise_head(chosen[0]), n.z.flatten(0, 1).index_select(0, denoise_at),
                              n.t_s.index_select(0, denoise_at.div(length, "floor")));
    const at::Tensor error = x_hat - target.flatten(0, 1).index_select(0, denoise_at);
    terms.push_back((error.square().mean(-1) * weight.index_select(0, denoise_at)).sum());
    loss.l2_sum = terms.back().detach();
  }
  if (decode_at.numel() > 0) {
    const VocabularyLoss ce = vocabulary_loss(
        student, chosen[1], input.ids.flatten().index_select(0, decode_at),
        vocabulary_piece(traits.vocab_size, decode_at.numel()), weight.index_select(0, decode_at));
    terms.push_back(ce.sum);
    loss.ce_sum = ce.sum.detach();
    loss.correct = ce.correct;
  }
  loss.total =
      (terms.size() == 1 ? terms[0] : terms[0] + terms[1]) / (rows > 0 ? rows : static_cast<double>(batch));
  return loss;
}

}  // namespace elf
