// Distillation where the answer is known: flows whose paths can be written down.
#include "elf/flow/distillation.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "elf/base/error.h"
#include "elf/flow/solver.h"
#include "elf/tensor/random.h"
#include "support/golden.h"

namespace elf {
namespace {

using test::all_close;

constexpr double kTimeFloor = 0.05;

// A network given by its x-prediction; features are the prediction itself. Counts rows and calls.
class Formula : public Denoiser {
 public:
  explicit Formula(std::function<at::Tensor(const DenoiserInput&)> x_hat) : x_hat_(std::move(x_hat)) {}
  at::Tensor features(const DenoiserInput& input) override {
    ++calls;
    rows += input.z.size(0);
    return x_hat_(input);
  }
  at::Tensor denoise_head(const at::Tensor& features) override { return features; }
  at::Tensor decode_head(const at::Tensor& features) override {
    return at::cat({features, at::zeros_like(features)}, -1);
  }
  int64_t calls = 0, rows = 0;

 private:
  std::function<at::Tensor(const DenoiserInput&)> x_hat_;
};

at::Tensor room(const DenoiserInput& input) {
  return 1 - input.t.reshape({-1, 1, 1});
}

// Every point moves with the constant velocity v: x_hat = z + (1 - t) v.
Formula constant_velocity(const at::Tensor& v) {
  return Formula([v](const DenoiserInput& input) { return input.z + room(input) * v; });
}

// Data N(mu, 1) on every number, noise N(0, 1): the best guess of x at z = t x + (1 - t) eps.
Formula gaussian(double mu) {
  return Formula([mu](const DenoiserInput& input) {
    const at::Tensor t = 1 - room(input);
    return mu + t / (t * t + (1 - t) * (1 - t)) * (input.z - t * mu);
  });
}

Walk walk_of(Denoiser& teacher, const at::Tensor& z, const at::Tensor& times) {
  return teacher_walk(teacher, {.z = z, .self_cond = {}, .w = {}, .clean = {}, .cond_mask = {}}, times,
                      kTimeFloor);
}

at::Tensor random_rows(int64_t rows, uint64_t seed) {
  return normal({seed, Purpose::kNoise}, sample_range(0, rows), {3, 2});
}

at::Tensor grid(int64_t rows, double from, double to, int64_t steps) {
  return at::linspace(from, to, steps + 1).unsqueeze(0).expand({rows, steps + 1});
}

// The student of an exact linear flow equals it in one step: whatever the sub-steps, x* is the teacher's own
// prediction, and one Euler step on it from noise to data ends where the teacher's 64 steps end. (The last
// steps before t = 1 keep clear of the floor of 1 - t: the flow is exact for t <= 0.95.)
TEST(ConstantVelocity, OneStepOfTheStudentIsTheWholeWalk) {
  const at::Tensor v = at::tensor({1.5f, -0.5f}), z = random_rows(4, 1);
  for (const int64_t steps : {1, 2, 7, 18}) {
    Formula teacher = constant_velocity(v);
    const at::Tensor times = grid(4, 0.0, 1.0, steps);
    const Walk walk = walk_of(teacher, z, times);
    EXPECT_EQ(teacher.calls, steps);
    EXPECT_TRUE(all_close(distillation_target(z, times, walk), z + v, 1e-5, 1e-5));
    const at::Tensor start = at::zeros({4}), end = at::ones({4});
    const at::Tensor student = euler_step(z, distillation_target(z, times, walk), start, end, kTimeFloor);
    EXPECT_TRUE(all_close(student, walk.z_end, 1e-5, 1e-5));
    EXPECT_TRUE(all_close(student, z + v, 1e-5, 1e-5));
  }
}

// The same by training: a student x_hat = z + (1 - t) a with the wrong velocity `a` finds the teacher's by
// gradient descent on the objective of the last round (one step), and then samples in one step what the
// teacher samples in 16.
TEST(ConstantVelocity, TheStudentLearnsIt) {
  const at::Tensor v = at::tensor({1.5f, -0.5f});
  at::Tensor a = at::tensor({-1.0f, 3.0f}).requires_grad_();
  Formula teacher = constant_velocity(v);
  Formula student([&a](const DenoiserInput& input) { return input.z + room(input) * a; });
  FlowConfig config;
  config.decoder_prob = 0;
  config.t_eps = 1e-3;
  const DistillationRound round{
      .step_size = 1.0, .teacher_steps = 16, .teacher_schedule = TimeDistribution::kUniform};
  const NetworkTraits traits{.self_cond = false, .cfg_tokens = false};
  const ObjectiveInput input{random_rows(8, 2), at::zeros({8, 3}, at::kLong), at::ones({8, 3}, at::kBool),
                             at::zeros({8, 3}, at::kBool)};
  double loss = 0;
  for (int64_t step = 0; step < 40; ++step) {
    const StepDraws draws = draw_distillation_step(config, round, {3, 2}, 7, step, sample_range(0, 8));
    const Loss found = distillation_objective(student, teacher, traits, input, draws, round, config);
    found.total.backward();
    loss = found.total.item<double>();
    const at::NoGradGuard no_grad;
    a.sub_(a.grad() * 0.5);
    a.mutable_grad().reset();
  }
  EXPECT_LT(loss, 1e-5);
  const at::NoGradGuard no_grad;
  const at::Tensor z = random_rows(4, 3), ends = at::ones({4});
  const at::Tensor one =
      euler_step(z, student.x_hat({z, {}, at::zeros({4}), {}, {}, {}}), at::zeros({4}), ends, 0.05);
  EXPECT_TRUE(all_close(one, walk_of(teacher, z, grid(4, 0, 1, 16)).z_end, 0, 5e-3));
}

// On a curved flow x* is not the prediction at the start, but one student step on it still ends where the
// walk ends.
TEST(Distillation, AStepOnTheTargetEndsWhereTheWalkEnds) {
  Formula teacher = gaussian(2.0);
  const at::Tensor z = random_rows(4, 4);
  const at::Tensor times = grid(4, 0.2, 0.7, 16);
  const Walk walk = walk_of(teacher, z, times);
  const at::Tensor target = distillation_target(z, times, walk);
  EXPECT_TRUE(all_close(euler_step(z, target, times.select(1, 0), times.select(1, 16), kTimeFloor),
                        walk.z_end, 1e-5, 1e-5));
  const at::Tensor guess = teacher.x_hat({z, {}, times.select(1, 0), {}, {}, {}});
  EXPECT_GT((target - guess).abs().max().item<double>(), 0.05);
}

TEST(Distillation, OneSubStepAndAVanishingSpanTakeThePrediction) {
  Formula teacher = gaussian(2.0);
  const at::Tensor z = random_rows(2, 5);
  const Walk one = walk_of(teacher, z, grid(2, 0.2, 0.7, 1));
  EXPECT_TRUE(at::equal(distillation_target(z, grid(2, 0.2, 0.7, 1), one),
                        teacher.x_hat({z, {}, at::full({2}, 0.2), {}, {}, {}})));
  // The second row's span is below 1e-3, the first's is not.
  const at::Tensor times = at::tensor({0.2f, 0.21f, 0.22f, 0.2f, 0.2001f, 0.2002f}).reshape({2, 3});
  const Walk walk = walk_of(teacher, z, times);
  const at::Tensor target = distillation_target(z, times, walk);
  EXPECT_TRUE(at::equal(target[1], walk.x_hat[1]));
  EXPECT_FALSE(at::equal(target[0], walk.x_hat[0]));
}

// The teacher works on denoise rows only: n forwards of them, and one more of those with the coin.
TEST(Distillation, TheTeacherRunsWhereItMatters) {
  Formula teacher = gaussian(0), student = gaussian(1);
  FlowConfig config;
  const DistillationRound round{.step_size = 0.25, .teacher_steps = 3};
  const ObjectiveInput input{random_rows(4, 6), at::zeros({4, 3}, at::kLong), at::ones({4, 3}, at::kBool),
                             at::zeros({4, 3}, at::kBool)};
  StepDraws draws = draw_distillation_step(config, round, {3, 2}, 1, 1, sample_range(0, 4));
  draws.decoder_row = at::tensor({0, 0, 0, 1}).to(at::kBool);
  draws.self_cond = at::tensor({0.9f, 0.1f, 0.9f, 0.1f});
  const Loss loss = distillation_objective(student, teacher, {}, input, draws, round, config);
  EXPECT_EQ(teacher.calls, 1 + 3);
  EXPECT_EQ(teacher.rows, 1 + 3 * 3);
  EXPECT_EQ(student.calls, 1);
  EXPECT_EQ(loss.l2_positions.item<double>(), 3);
  EXPECT_EQ(loss.ce_positions.item<double>(), 1);
}

TEST(Distillation, DrawsAreKeyedBySample) {
  FlowConfig config;
  config.label_drop_prob = 0.5;
  const DistillationRound round{.step_size = 0.25, .teacher_steps = 4};
  const StepDraws all = draw_distillation_step(config, round, {3, 2}, 9, 3, sample_range(0, 12));
  const StepDraws some = draw_distillation_step(config, round, {3, 2}, 9, 3, {7, 2});
  EXPECT_TRUE(at::equal(some.substeps[0], all.substeps[7]) && at::equal(some.substeps[1], all.substeps[2]));
  EXPECT_TRUE(at::equal(some.time[0], all.time[7]));
  EXPECT_FALSE(all.label_drop.any().item<bool>());
  const at::Tensor t_s = student_time(all.time, round, config);
  const at::Tensor times = teacher_times(t_s, t_s + 0.25, all.substeps, round, config);
  EXPECT_TRUE((times.slice(1, 1) >= times.slice(1, 0, -1)).all().item<bool>());
  EXPECT_TRUE((times <= 1).all().item<bool>());
}

TEST(Distillation, RefusesRoundsThatCannotBe) {
  Formula teacher = gaussian(0), student = gaussian(1);
  const FlowConfig config;
  const ObjectiveInput input{random_rows(2, 6), at::zeros({2, 3}, at::kLong), at::ones({2, 3}, at::kBool),
                             at::zeros({2, 3}, at::kBool)};
  const StepDraws draws =
      draw_distillation_step(config, {.step_size = 0.5, .teacher_steps = 2}, {3, 2}, 1, 1, {0, 1});
  const auto loss = [&](const DistillationRound& round) {
    return distillation_objective(student, teacher, {}, input, draws, round, config);
  };
  EXPECT_NO_THROW(loss({.step_size = 0.5, .teacher_steps = 2}));
  EXPECT_THROW(loss({.step_size = 0.5, .teacher_steps = 3}), Error);  // other draws than it needs
  EXPECT_THROW(loss({.step_size = 0.0, .teacher_steps = 2}), Error);
  EXPECT_THROW(loss({.step_size = 1.5, .teacher_steps = 2}), Error);
  EXPECT_THROW(loss({.step_size = 0.5, .teacher_steps = 0}), Error);
}

}  // namespace
}  // namespace elf
