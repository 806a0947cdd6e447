// The configurations of rounds.
#include "elf/train/distillation_rounds.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "elf/base/error.h"

namespace elf {
namespace {

RunConfig three_rounds() {
  RunConfig config;
  config.train.objective = TrainObjective::kDistillation;
  config.train.out = "runs/d";
  config.distillation.teacher = "/teacher";
  config.distillation.student_steps = {8, 4, 2};
  config.distillation.teacher_steps = {8, 16, 32};
  config.distillation.gamma = {2.0, 1.5, 1.0};
  config.distillation.self_cond_cfg = {2.5};
  return config;
}

TEST(DistillationRounds, EachIsARunThatStartsFromTheOneBefore) {
  const RunConfig config = three_rounds();
  const RunConfig first = round_config(config, 0), last = round_config(config, 2);
  EXPECT_EQ(first.train.out, "runs/d/steps-8");
  EXPECT_EQ(first.train.init_from, "/teacher");
  EXPECT_EQ(last.train.out, "runs/d/steps-2");
  EXPECT_EQ(last.train.init_from, (std::filesystem::current_path() / "runs/d/steps-4").string());
  EXPECT_EQ(last.distillation.teacher, "/teacher");
  EXPECT_EQ(last.sampling.steps, 2);
  EXPECT_EQ(last.sampling.gamma, 1.0);
  EXPECT_EQ(last.sampling.self_cond_cfg, 2.5);
  const DistillationRound round = distillation_round(last.distillation);
  EXPECT_EQ(round.step_size, 0.5);
  EXPECT_EQ(round.teacher_steps, 32);
  for (size_t i = 0; i < 3; ++i) validate(round_config(config, i));
}

TEST(DistillationRounds, SettingsThatAreNotGivenAreThoseOfSampling) {
  RunConfig config = three_rounds();
  config.distillation.gamma = config.distillation.self_cond_cfg = {};
  config.sampling.gamma = 0.7;
  config.sampling.self_cond_cfg = 1.1;
  config.train.init_from = "/warm";
  const RunConfig round = round_config(config, 0);
  EXPECT_EQ(round.sampling.gamma, 0.7);
  EXPECT_EQ(round.sampling.self_cond_cfg, 1.1);
  EXPECT_EQ(round.train.init_from, "/warm");
}

// The configuration that a round stores is that of one round: run again, it is itself.
TEST(DistillationRounds, OneAloneIsTheRunFolder) {
  const RunConfig round = round_config(three_rounds(), 1);
  EXPECT_TRUE(round_config(round, 0) == round);
  EXPECT_THROW(distillation_round(three_rounds().distillation), Error);
}

}  // namespace
}  // namespace elf
