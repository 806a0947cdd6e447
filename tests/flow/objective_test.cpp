// The pieces of the objective with values worked out by hand, and the draws of a step.
#include "elf/flow/objective.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "corruption.h"
#include "elf/base/error.h"
#include "elf/flow/conditioning.h"
#include "elf/flow/draws.h"
#include "elf/flow/guidance.h"
#include "elf/flow/interpolant.h"
#include "elf/tensor/random.h"
#include "support/golden.h"

namespace elf {
namespace {

using test::all_close;

at::Tensor flags(const std::vector<int64_t>& values) {
  return at::tensor(values).to(at::kBool);
}

TEST(Interpolant, EndsAreNoiseAndData) {
  const at::Tensor x = at::full({2, 1, 3}, 5.0), eps = at::full({2, 1, 3}, -1.0);
  const at::Tensor z = mix_noise(x, at::tensor({0.0, 1.0}), eps, 2.0);
  EXPECT_TRUE(at::equal(z[0], at::full({1, 3}, -2.0)));
  EXPECT_TRUE(at::equal(z[1], x[1]));
  EXPECT_NEAR(mix_noise(x, at::tensor({0.25, 0.5}), eps, 2.0)[0][0][0].item<double>(), 0.25 * 5 - 0.75 * 2,
              1e-6);
  // One level a token: the decode branch.
  EXPECT_TRUE(at::equal(mix_noise(x, at::tensor({0.0, 1.0}).reshape({2, 1}), eps, 2.0), z));
}

TEST(Interpolant, VelocityOfTheTruthLeadsToIt) {
  const at::Tensor x = at::full({1, 1, 1}, 3.0), z = at::full({1, 1, 1}, 1.0);
  const at::Tensor v = velocity(x, z, at::tensor({0.6f}), 0.05);
  EXPECT_NEAR((z + 0.4 * v).item<double>(), 3.0, 1e-6);
  EXPECT_NEAR(velocity(x, z, at::tensor({0.99f}), 0.05).item<double>(), 2.0 / 0.05, 1e-4);  // the floor
  EXPECT_NEAR(velocity(x, z, at::tensor({1.0f}), 0.05).item<double>(), 2.0 / 0.05, 1e-4);
}

TEST(Interpolant, TimesAndScales) {
  FlowConfig config;
  EXPECT_NEAR(training_time(at::tensor({0.0}), config).item<double>(), 1 / (1 + std::exp(1.5)), 1e-6);
  config.time_schedule = TimeDistribution::kUniform;
  EXPECT_EQ(training_time(at::tensor({0.25}), config).item<double>(), 0.25);
  EXPECT_NEAR(self_cond_scale(at::tensor({0.0}), config).item<double>(), 0.5, 1e-6);
  EXPECT_NEAR(self_cond_scale(at::tensor({1.0}), config).item<double>(), 5.0, 1e-5);
  EXPECT_NEAR(self_cond_scale(at::tensor({0.5}), config).item<double>(), std::sqrt(1.5 * 6.0) - 1,
              1e-5);  // geometric mean of 1 + w
  EXPECT_NEAR(corruption_level(at::tensor({1.0}), config).item<double>(), 1 / (1 + std::exp(-1.6)), 1e-6);
}

TEST(Conditioning, PinsAndZeroes) {
  const at::Tensor value = at::ones({1, 2, 2}), clean = at::full({1, 2, 2}, 7.0);
  const at::Tensor mask = flags({1, 0}).unsqueeze(0);
  EXPECT_TRUE(
      at::equal(pin_condition(value, clean, mask), at::tensor({7.0f, 7.0f, 1.0f, 1.0f}).reshape({1, 2, 2})));
  EXPECT_TRUE(
      at::equal(zero_condition(value, mask), at::tensor({0.0f, 0.0f, 1.0f, 1.0f}).reshape({1, 2, 2})));
  EXPECT_TRUE(pin_condition(value, clean, {}).is_same(value));
}

TEST(Guidance, TargetHasTheGuidedFixedPoint) {
  const at::Tensor v = at::full({1, 2}, 2.0), v_u = at::full({1, 2}, 0.5), one = at::tensor({1.0f}),
                   w = at::tensor({3.0f});
  EXPECT_TRUE(at::equal(guided_target(v, v * 9, v_u, one), v));  // w = 1: no guidance
  const at::Tensor guided = v_u + 3 * (v - v_u);  // a network that predicts this is told to predict this
  EXPECT_TRUE(all_close(guided_target(v, guided, v_u, w), guided, 1e-6, 1e-6));
  EXPECT_NEAR(guide(v_u, v, 3).select(1, 0).item<double>(), 5.0, 1e-6);
}

TEST(LossMask, PadAndEos) {
  ObjectiveInput input;
  input.cond_mask = flags({1, 0, 0, 0}).unsqueeze(0);
  input.valid_mask = flags({1, 1, 1, 0}).unsqueeze(0);
  EXPECT_TRUE(at::equal(loss_mask(input, PadToken::kPad), flags({0, 1, 1, 0}).unsqueeze(0)));
  EXPECT_TRUE(at::equal(loss_mask(input, PadToken::kEos), flags({0, 1, 1, 1}).unsqueeze(0)));
}

TEST(Draws, DependOnSampleNotOnBatch) {
  FlowConfig config;
  config.label_drop_prob = 0.3;
  config.decoder_prob = 0.5;
  const StepDraws all = draw_step(config, {5, 4}, 9, 3, sample_range(0, 12)),
                  some = draw_step(config, {5, 4}, 9, 3, {7, 2});
  const auto same = [](const at::Tensor& a, const at::Tensor& b) {
    return at::equal(a[0], b[7]) && at::equal(a[1], b[2]);
  };
  EXPECT_TRUE(same(some.time, all.time) && same(some.eps, all.eps) &&
              same(some.decoder_row, all.decoder_row));
  EXPECT_TRUE(same(some.p_normal, all.p_normal) && same(some.decoder_eps, all.decoder_eps));
  EXPECT_TRUE(same(some.self_cond, all.self_cond) && same(some.w, all.w) &&
              same(some.label_drop, all.label_drop));
  EXPECT_FALSE(at::equal(draw_step(config, {5, 4}, 9, 4, {7, 2}).time, some.time));
}

TEST(Draws, RatesAndNoiseOfTheTakenBranchOnly) {
  FlowConfig config;
  config.decoder_prob = 0.2;
  const int64_t rows = 4000;
  const StepDraws draws = draw_step(config, {3, 2}, 1, 1, sample_range(0, rows));
  EXPECT_NEAR(draws.decoder_row.to(at::kFloat).mean().item<double>(), 0.2, 0.02);
  EXPECT_FALSE(draws.label_drop.any().item<bool>());
  const at::Tensor decode = draws.decoder_row;
  EXPECT_TRUE(at::equal(draws.eps.ne(0).any(-1).any(-1), decode.logical_not()));
  EXPECT_TRUE(at::equal(draws.decoder_eps.ne(0).any(-1).any(-1), decode));
  EXPECT_TRUE(at::equal(draws.p_normal.ne(0).any(-1), decode));
  EXPECT_NEAR(draws.eps.index({decode.logical_not()}).std().item<double>(), 1.0, 0.02);
}

TEST(Draws, PerStepBranchIsSharedByAllRowsAndRanks) {
  FlowConfig config;
  config.branch = Branch::kPerStep;
  config.decoder_prob = 0.5;
  int decode_steps = 0;
  for (int64_t step = 0; step < 40; ++step) {
    const at::Tensor rows = draw_step(config, {2, 2}, 5, step, sample_range(0, 6)).decoder_row;
    EXPECT_EQ(rows.all().item<bool>(), rows.any().item<bool>());
    EXPECT_EQ(draw_step(config, {2, 2}, 5, step, {100}).decoder_row[0].item<bool>(), rows[0].item<bool>());
    decode_steps += rows[0].item<bool>();
  }
  EXPECT_GT(decode_steps, 8);
  EXPECT_LT(decode_steps, 32);
}

// A share of the tokens is masked in decode rows only: of those the branch sees nothing but noise.
TEST(Draws, MaskedTokensAreNoise) {
  FlowConfig config;
  config.decoder_prob = 0.5;
  config.decoder_mask_prob = 0.2;
  const int64_t rows = 400;
  const StepDraws draws = draw_step(config, {10, 4}, 1, 1, sample_range(0, rows));
  const at::Tensor decode = draws.decoder_row.unsqueeze(1);
  EXPECT_FALSE(draws.decoder_mask.logical_and(decode.logical_not()).any().item<bool>());
  EXPECT_NEAR(draws.decoder_mask.index({draws.decoder_row}).to(at::kFloat).mean().item<double>(), 0.2, 0.03);
  const at::Tensor x = at::full({rows, 10, 4}, 7.0), no_condition = at::zeros({rows, 10}, at::kBool),
                   seen = corrupted_latents(x, no_condition, draws, config);
  const at::Tensor noise = config.decoder_noise_scale * draws.decoder_eps;
  EXPECT_TRUE(all_close(seen.index({draws.decoder_mask}), noise.index({draws.decoder_mask}), 0, 1e-6));
  // Nothing else changes: the other tokens, and every draw, are those without masks.
  config.decoder_mask_prob = 0;
  const StepDraws plain = draw_step(config, {10, 4}, 1, 1, sample_range(0, rows));
  EXPECT_FALSE(plain.decoder_mask.defined());
  const at::Tensor open = draws.decoder_mask.logical_not();
  EXPECT_TRUE(at::equal(corrupted_latents(x, no_condition, plain, config).index({open}), seen.index({open})));
}

// A network with a known answer: predicts `answer` everywhere and counts the rows it is run on.
class Constant : public Denoiser {
 public:
  explicit Constant(double answer) : answer_(answer) {}
  at::Tensor features(const DenoiserInput& input) override {
    rows_.push_back(input.z.size(0));
    return at::full_like(input.z, answer_);
  }
  at::Tensor denoise_head(const at::Tensor& features) override {
    denoise_positions_ += features.numel() / features.size(-1);
    return features;
  }
  at::Tensor decode_head(const at::Tensor& features) override {
    decode_positions_ += features.numel() / features.size(-1);
    return at::zeros({features.size(0), 7});
  }
  std::vector<int64_t> rows_;
  int64_t denoise_positions_ = 0, decode_positions_ = 0;

 private:
  double answer_;
};

// Four rows of three positions: denoise with coin, denoise without, decode with coin, decode without.
TEST(Objective, WorksOnlyWhereItMattersAndHasTheKnownLoss) {
  const int64_t length = 3, width = 2;
  ObjectiveInput input{at::full({4, length, width}, 2.0), at::zeros({4, length}, at::kLong),
                       at::ones({4, length}, at::kBool), at::zeros({4, length}, at::kBool)};
  input.cond_mask.select(1, 0).fill_(true);
  FlowConfig config;
  config.time_schedule = TimeDistribution::kUniform;
  const StepDraws draws{
      at::full({4}, 0.5),     at::zeros({4, length, width}), flags({0, 0, 1, 1}),
      at::zeros({4, length}), at::zeros({4, length, width}), at::tensor({0.1f, 0.9f, 0.1f, 0.9f}),
      at::full({4}, 0.3),     at::zeros({4}, at::kBool)};
  Constant network(5.0);
  const Loss loss = objective(network, {}, input, draws, config);
  EXPECT_EQ(network.rows_, (std::vector<int64_t>{1, 4}));  // x_u of the one row that uses it, then everything
  EXPECT_EQ(network.denoise_positions_, length + 4);  // x_u: one row; then two free positions of two rows
  EXPECT_EQ(network.decode_positions_, 4);
  // z = 1 at free positions: v_hat = (5 - 1) / 0.5 = 8, v = (2 - 1) / 0.5 = 2, and v_c = v_u, so that
  // guidance changes nothing.
  EXPECT_NEAR(loss.l2_sum.item<double>(), 4 * 36.0, 1e-3);
  EXPECT_NEAR(loss.ce_sum.item<double>(), 4 * std::log(7.0), 1e-5);
  EXPECT_NEAR(loss.total.item<double>(), (4 * 36.0 + 4 * std::log(7.0)) / 8, 1e-4);
  EXPECT_EQ(loss.correct.item<double>(), 4);
}

// What the denoise head should give for a batch of known x and noise, off by `error`.
class Perfect : public Denoiser {
 public:
  Perfect(Prediction kind, at::Tensor x, at::Tensor noise, double error)
      : kind_(kind), x_(std::move(x)), noise_(std::move(noise)), error_(error) {}
  at::Tensor features(const DenoiserInput&) override {
    const at::Tensor answer = kind_ == Prediction::kX ? x_ : kind_ == Prediction::kV ? x_ - noise_ : noise_;
    return answer + error_;
  }
  at::Tensor denoise_head(const at::Tensor& features) override { return features; }
  at::Tensor decode_head(const at::Tensor& features) override { return features; }
  at::Tensor x_from_output(const at::Tensor& output, const at::Tensor& z, const at::Tensor& t) override {
    return x_from_prediction(kind_, output, z, t);
  }

 private:
  Prediction kind_;
  at::Tensor x_, noise_;
  double error_;
};

// The same network, told to predict x, v or the noise: a perfect answer costs nothing, and one that is off by
// d costs (d / (1 - t))^2, d^2 and (d / t)^2 in velocities.
TEST(Prediction, PerfectAnswersCostNothingAndErrorsWeighAsKnown) {
  const int64_t length = 3, width = 2, rows = 4;
  FlowConfig config;
  config.time_schedule = TimeDistribution::kUniform;
  config.decoder_prob = 0;
  const double t = 0.3, d = 0.1;
  const at::Tensor x = normal({1, Purpose::kNoise}, sample_range(0, rows), {length, width});
  const ObjectiveInput input{x, at::zeros({rows, length}, at::kLong), at::ones({rows, length}, at::kBool),
                             at::zeros({rows, length}, at::kBool)};
  StepDraws draws = draw_step(config, {length, width}, 1, 1, sample_range(0, rows));
  draws.time.fill_(t);
  const at::Tensor noise = config.denoiser_noise_scale * draws.eps;
  const NetworkTraits traits{.self_cond = false, .cfg_tokens = false};
  const std::pair<Prediction, double> weights[] = {
      {Prediction::kX, 1 / ((1 - t) * (1 - t))}, {Prediction::kV, 1.0}, {Prediction::kEpsilon, 1 / (t * t)}};
  for (const auto& [kind, weight] : weights) {
    Perfect perfect(kind, x, noise, 0), off(kind, x, noise, d);
    EXPECT_LT(objective(perfect, traits, input, draws, config).total.item<double>(), 1e-9);
    EXPECT_NEAR(objective(off, traits, input, draws, config).total.item<double>(), weight * d * d,
                1e-4 * weight * d * d);
  }
}

// Known noise beside known x: conversions at the ends of the path.
TEST(Prediction, ConversionsGiveTheVeryX) {
  const at::Tensor x = at::full({3, 1, 2}, 2.0), noise = at::full({3, 1, 2}, -1.0),
                   t = at::tensor({0.1f, 0.5f, 1.0f});
  const at::Tensor z = mix_noise(x, t, noise, 1.0);
  EXPECT_TRUE(x_from_prediction(Prediction::kX, x, z, t).is_same(x));
  EXPECT_TRUE(all_close(x_from_prediction(Prediction::kV, x - noise, z, t), x, 1e-5, 1e-5));
  EXPECT_TRUE(all_close(x_from_prediction(Prediction::kEpsilon, noise, z, t), x, 1e-5, 1e-5));
  const at::Tensor start = at::zeros({3});  // finite where there is nothing to divide by
  EXPECT_TRUE(
      at::isfinite(x_from_prediction(Prediction::kEpsilon, noise * 2, noise, start)).all().item<bool>());
}

TEST(Objective, RefusesShapesThatDoNotFit) {
  ObjectiveInput input{at::zeros({2, 3, 4}), at::zeros({2, 3}, at::kLong), at::ones({2, 3}, at::kBool),
                       at::zeros({2, 2}, at::kBool)};
  const StepDraws draws = draw_step({}, {3, 4}, 1, 1, {0, 1});
  Constant network(0);
  EXPECT_THROW(objective(network, {}, input, draws, {}), Error);
}

}  // namespace
}  // namespace elf
