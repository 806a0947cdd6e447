// Progressive distillation against golden/distill, every case. Targets 2e-3 (up to 64 steps of the teacher
// add up their rounding), other intermediates 1e-5, losses 1e-4, gradients 1e-3 of the largest entry; fast
// form equal to the plain one (1e-5; gradients 2e-5).
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "elf/base/error.h"
#include "elf/config/distillation_config.h"
#include "elf/flow/distillation.h"
#include "flow/plain_distillation.h"
#include "support/golden_gradients.h"
#include "support/tiny_networks.h"

namespace elf {
namespace {

using test::all_close;
using test::close_to_largest;
using test::golden;
using test::golden_json;
using test::take_gradients;

TimeDistribution schedule(const std::string& name) {
  return name == "uniform" ? TimeDistribution::kUniform : TimeDistribution::kLogitNormal;
}

struct DistillationCase {
  nlohmann::json about;
  TensorMap tensors;
  std::unique_ptr<ElfNet> student, teacher;
  FlowConfig config;
  DistillationRound round;
  NetworkTraits traits;
  ObjectiveInput input;
  StepDraws draws;

  explicit DistillationCase(const std::string& name) {
    about = golden_json("distill/distill.json").at(name);
    tensors = read_safetensors(golden("distill/" + name + ".safetensors"));
    student = test::tiny_network(about.at("network"));
    teacher = test::tiny_network(about.at("network"));
    teacher->load(read_safetensors(golden("elf_tiny/ema.safetensors")));
    read_config(about.at("config"));
    // The published code gives the self-condition half in every case; with self_cond_prob 0 it is empty at
    // the start.
    traits = {.self_cond = true, .vocab_size = student->config().vocab_size};
    const double mean = about.at("config").at("latent_mean"), std = about.at("config").at("latent_std");
    input = {(at("in/encoder_output") - mean) / std, at("in/input_ids"),
             at("in/attention_mask").to(at::kBool), at("in/cond_mask").to(at::kBool)};
    // The recorded coin is what became of the draw: 1 = self-conditioned, as a draw of 0 would be.
    const at::Tensor coin = at("draw/self_cond_coin");
    draws = {.time = either("draw/t_s_"),
             .eps = at("draw/eps"),
             .decoder_row = at("draw/decoder_row").to(at::kBool),
             .p_normal = at("draw/p_normal"),
             .decoder_eps = at("draw/decoder_eps"),
             .self_cond = coin.defined() ? 1 - coin : at::ones({input.latents.size(0)}),
             .w = at("draw/w_uniform").defined() ? at("draw/w_uniform") : at::zeros({input.latents.size(0)}),
             .label_drop = at("draw/decoder_row").to(at::kBool).zero_(),
             .substeps = either("draw/substep_")};
  }
  at::Tensor at(const std::string& name) const {
    const auto found = tensors.find(name);
    return found == tensors.end() ? at::Tensor() : found->second;
  }
  at::Tensor either(const std::string& name) const {
    return at(name + "normal").defined() ? at(name + "normal") : at(name + "uniform");
  }
  at::Tensor denoise_rows() const { return draws.decoder_row.logical_not().nonzero().reshape({-1}); }

 private:
  void read_config(const nlohmann::json& c) {
    config = test::golden_flow_config(c);
    round = {.step_size = c.at("pd_step_size"),
             .teacher_steps = c.at("pd_teacher_steps"),
             .student_schedule = schedule(c.at("pd_student_schedule")),
             .teacher_schedule = schedule(c.at("pd_teacher_schedule"))};
  }
};

class DistillationGolden : public ::testing::TestWithParam<std::string> {};

// Differences in rounding grow along the teacher's walk; after 64 sub-steps from noise they have come to
// 3e-3.
double walk_tolerance(const DistillationCase& c) {
  return c.round.teacher_steps >= 64 ? 5e-3 : 2e-3;
}

TEST_P(DistillationGolden, PlainFormHasEveryIntermediate) {
  const DistillationCase c(GetParam());
  const auto plain =
      test::plain_distillation(*c.student, *c.teacher, c.traits, c.input, c.draws, c.round, c.config);
  int compared = 0;
  for (const auto& [name, expected] : c.tensors) {
    if (!name.starts_with("mid/") && !name.starts_with("walk/")) continue;
    const auto found = plain.seen.find(name);
    ASSERT_NE(found, plain.seen.end()) << name;
    // The teacher has nothing to say in decode rows, and what is recorded of them there is of no use.
    const bool of_rows = name.find("mse") == std::string::npos && name.find("ce_per") == std::string::npos;
    const int64_t row_axis = name.starts_with("walk/") && name != "walk/z_end" ? 1 : 0;
    const bool everywhere = name == "mid/model_input" || name == "mid/loss_mask" ||
                            name == "mid/self_cond_half" || name == "mid/z_decode" || name == "mid/x" ||
                            name == "mid/x_hat";
    at::Tensor actual = found->second, wanted = expected;
    if (of_rows && !everywhere) {
      actual = actual.index_select(row_axis, c.denoise_rows());
      wanted = wanted.index_select(row_axis, c.denoise_rows());
    } else if (!of_rows) {
      const at::Tensor rows = name.find("mse") != std::string::npos
                                  ? c.denoise_rows()
                                  : c.draws.decoder_row.nonzero().reshape({-1});
      actual = actual.index_select(0, rows);
      wanted = wanted.index_select(0, rows);
    }
    const bool walked =
        name.starts_with("walk/") || name == "mid/target" || name.find("mse") != std::string::npos;
    const double tolerance = walked ? walk_tolerance(c) : 1e-5;
    EXPECT_TRUE(all_close(actual, wanted, tolerance, tolerance)) << name;
    ++compared;
  }
  EXPECT_GE(compared, 12);
  EXPECT_TRUE(all_close(plain.total, c.at("out/loss"), 1e-4, 1e-4));
  EXPECT_TRUE(all_close(plain.ce_mean, c.at("out/ce_loss"), 1e-4, 1e-4));
  EXPECT_TRUE(all_close(plain.l2_mean, c.at("out/l2_loss"), 1e-4, 1e-4));
  plain.total.backward();
  test::expect_golden_gradients("distill/" + GetParam(), c.about, take_gradients(*c.student), 1e-3);
}

TEST_P(DistillationGolden, FastFormEqualsGoldenAndPlain) {
  const DistillationCase c(GetParam());
  const Loss fast =
      distillation_objective(*c.student, *c.teacher, c.traits, c.input, c.draws, c.round, c.config);
  EXPECT_TRUE(all_close(fast.total, c.at("out/loss"), 1e-4, 1e-4));
  EXPECT_TRUE(all_close(fast.ce_sum / fast.ce_positions.clamp_min(1), c.at("out/ce_loss"), 1e-4, 1e-4));
  EXPECT_TRUE(all_close(fast.l2_sum / fast.l2_positions.clamp_min(1), c.at("out/l2_loss"), 1e-4, 1e-4));
  EXPECT_EQ((fast.ce_positions + fast.l2_positions).item<double>(), c.about.at("batch").get<double>());
  fast.total.backward();
  const TensorMap gradients = take_gradients(*c.student);
  test::expect_golden_gradients("distill/" + GetParam(), c.about, gradients, 1e-3);
  for (const ParamRef& p : c.teacher->parameters()) EXPECT_FALSE(p.tensor.grad().defined()) << p.name;

  const auto plain =
      test::plain_distillation(*c.student, *c.teacher, c.traits, c.input, c.draws, c.round, c.config);
  const double rounding = walk_tolerance(c) / 10;  // products of fewer rows round differently
  EXPECT_TRUE(all_close(fast.total, plain.total, rounding, rounding));
  plain.total.backward();
  for (const auto& [name, gradient] : take_gradients(*c.student)) {
    EXPECT_TRUE(close_to_largest(gradients.at(name), gradient, rounding)) << name;
  }
}

// The walk and x* of the fast form from the recorded start.
TEST_P(DistillationGolden, WalkAndTarget) {
  const DistillationCase c(GetParam());
  const at::Tensor rows = c.denoise_rows();
  const auto row = [&](const std::string& name) {
    return c.at(name).defined() ? c.at(name).index_select(0, rows) : at::Tensor();
  };
  const at::Tensor t_s = student_time(c.draws.time, c.round, c.config).index_select(0, rows);
  EXPECT_TRUE(all_close(t_s, row("mid/t_s"), 1e-5, 1e-7));
  const at::Tensor raw = c.draws.substeps.defined() ? c.draws.substeps.index_select(0, rows) : at::Tensor();
  const at::Tensor times = teacher_times(t_s, t_s + c.round.step_size, raw, c.round, c.config);
  if (c.at("mid/substep_times").defined())
    EXPECT_TRUE(all_close(times, row("mid/substep_times"), 1e-5, 1e-6));
  const WalkStart start{row("mid/z"), row("mid/self_cond_half"), row("mid/w"), row("mid/x"),
                        c.input.cond_mask.index_select(0, rows)};
  const Walk walk = teacher_walk(*c.teacher, start, times, c.config.t_eps);
  if (c.at("walk/z_end").defined()) EXPECT_TRUE(all_close(walk.z_end, row("walk/z_end"), 2e-3, 2e-3));
  EXPECT_TRUE(all_close(distillation_target(start.z, times, walk), row("mid/target"), 2e-3, 2e-3));
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  const nlohmann::json all = golden_json("distill/distill.json");
  for (const auto& [name, about] : all.items()) {
    if (name != "curriculum") names.push_back(name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Golden, DistillationGolden, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param; });

// The published rounds are the defaults of the configuration, and their sub-steps are 1/64 each.
TEST(DistillationGolden, CurriculumIsTheDefault) {
  const DistillationConfig config;
  const nlohmann::json curriculum = golden_json("distill/distill.json").at("curriculum");
  ASSERT_EQ(curriculum.size(), config.student_steps.size());
  for (size_t i = 0; i < curriculum.size(); ++i) {
    EXPECT_EQ(curriculum[i].at("student_steps").get<int64_t>(), config.student_steps[i]);
    EXPECT_EQ(curriculum[i].at("pd_teacher_steps").get<int64_t>(), config.teacher_steps[i]);
    EXPECT_EQ(curriculum[i].at("pd_step_size").get<double>(),
              1.0 / static_cast<double>(config.student_steps[i]));
    EXPECT_EQ(config.student_steps[i] * config.teacher_steps[i], 64);
  }
}

// Rows in two micro-batches, divided by the rows of both: losses and gradients add up (1e-5).
TEST(Distillation, MicroBatchesAddUp) {
  const DistillationCase c("mixed_cond_eos");
  const Loss whole =
      distillation_objective(*c.student, *c.teacher, c.traits, c.input, c.draws, c.round, c.config);
  whole.total.backward();
  const TensorMap expected = take_gradients(*c.student);
  double total = 0;
  for (const auto& [start, count] : {std::pair<int64_t, int64_t>{0, 1}, {1, 2}}) {
    const auto rows = [start = start, count = count](const at::Tensor& x) {
      return x.narrow(0, start, count);
    };
    const ObjectiveInput input{rows(c.input.latents), rows(c.input.ids), rows(c.input.valid_mask),
                               rows(c.input.cond_mask)};
    const StepDraws& d = c.draws;
    const StepDraws draws{rows(d.time),     rows(d.eps),         rows(d.decoder_row),
                          rows(d.p_normal), rows(d.decoder_eps), rows(d.self_cond),
                          rows(d.w),        rows(d.label_drop),  rows(d.substeps)};
    const Loss part =
        distillation_objective(*c.student, *c.teacher, c.traits, input, draws, c.round, c.config, 3);
    part.total.backward();
    total += part.total.item<double>();
  }
  EXPECT_NEAR(total, whole.total.item<double>(), 1e-5 * total);
  for (const auto& [name, gradient] : take_gradients(*c.student)) {
    EXPECT_TRUE(close_to_largest(gradient, expected.at(name), 1e-5)) << name;
  }
}

// The vocabulary head in pieces of 5 positions changes nothing, weights by row included (1e-6; gradients
// 1e-5).
TEST(Distillation, VocabularyInPieces) {
  const DistillationCase c("mixed_cond_eos");
  const Loss whole =
      distillation_objective(*c.student, *c.teacher, c.traits, c.input, c.draws, c.round, c.config);
  whole.total.backward();
  const TensorMap expected = take_gradients(*c.student);
  NetworkTraits traits = c.traits;
  traits.vocab_size = (int64_t{1} << 25) / 5;
  const Loss pieces =
      distillation_objective(*c.student, *c.teacher, traits, c.input, c.draws, c.round, c.config);
  EXPECT_TRUE(all_close(pieces.total, whole.total, 1e-6, 1e-6));
  EXPECT_TRUE(all_close(pieces.correct, whole.correct, 1e-6, 1e-6));
  pieces.total.backward();
  for (const auto& [name, gradient] : take_gradients(*c.student)) {
    EXPECT_TRUE(close_to_largest(gradient, expected.at(name), 1e-5)) << name;
  }
}

}  // namespace
}  // namespace elf
