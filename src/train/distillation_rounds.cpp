#include "elf/train/distillation_rounds.h"

#include <filesystem>
#include <vector>

#include "elf/base/error.h"

namespace elf {
namespace {

std::string folder_of(const RunConfig& config, size_t index) {
  return (std::filesystem::path(config.train.out) / cat("steps-", config.distillation.student_steps[index]))
      .string();
}

// A value a round, one for all, or none.
double setting(const std::vector<double>& values, size_t index, double otherwise) {
  if (values.empty()) return otherwise;
  return values.size() == 1 ? values.front() : values[index];
}

}  // namespace

DistillationRound distillation_round(const DistillationConfig& config) {
  if (config.student_steps.size() != 1 || config.teacher_steps.size() != 1)
    usage_error("distillation: ", config.student_steps.size(), " rounds, expected one");
  return {.step_size = 1.0 / static_cast<double>(config.student_steps.front()),
          .teacher_steps = config.teacher_steps.front(),
          .student_schedule = config.student_schedule,
          .teacher_schedule = config.teacher_schedule};
}

RunConfig round_config(const RunConfig& config, size_t index) {
  const DistillationConfig& all = config.distillation;
  RunConfig round = config;
  if (all.student_steps.size() > 1) round.train.out = folder_of(config, index);
  if (index > 0) round.train.init_from = std::filesystem::absolute(folder_of(config, index - 1)).string();
  if (round.train.init_from.empty()) round.train.init_from = all.teacher;
  round.distillation.student_steps = {all.student_steps[index]};
  round.distillation.teacher_steps = {all.teacher_steps[index]};
  round.sampling.steps = all.student_steps[index];
  round.sampling.gamma = setting(all.gamma, index, config.sampling.gamma);
  round.sampling.self_cond_cfg = setting(all.self_cond_cfg, index, config.sampling.self_cond_cfg);
  round.distillation.gamma = {round.sampling.gamma};
  round.distillation.self_cond_cfg = {round.sampling.self_cond_cfg};
  return round;
}

}  // namespace elf
