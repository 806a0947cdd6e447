// The sampler with denoisers whose answers are known.
#include "elf/sample/sampler.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "elf/base/error.h"
#include "elf/flow/times.h"
#include "elf/tensor/random.h"
#include "support/golden.h"

namespace elf {
namespace {

using test::all_close;

constexpr double kMean = 0.7, kDeviation = 0.5, kNoise = 2.0;
constexpr int64_t kLength = 4, kWidth = 6;

// Best prediction for data N(mean, deviation^2) per coordinate; takes no notice of the self-condition half.
class GaussianDenoiser : public Denoiser {
 public:
  at::Tensor features(const DenoiserInput& input) override {
    const at::Tensor t = input.t.view({-1, 1, 1});
    const at::Tensor variance = t * t * (kDeviation * kDeviation) + (1 - t) * (1 - t) * (kNoise * kNoise);
    return kMean + t * (kDeviation * kDeviation) * (input.z - t * kMean) / variance;
  }
  at::Tensor denoise_head(const at::Tensor& features) override { return features; }
  at::Tensor decode_head(const at::Tensor& features) override { return features; }
};

// Mixes positions and both halves, so that a row that leaks, a lost half or a lost condition shows.
class MixingDenoiser : public GaussianDenoiser {
 public:
  at::Tensor features(const DenoiserInput& input) override {
    at::Tensor mixed = input.z + 0.5 * input.z.mean(1, true);
    if (input.self_cond.defined()) mixed = mixed + 0.3 * input.self_cond.roll(1, -1);
    if (input.w.defined()) mixed = mixed + 0.1 * input.w.view({-1, 1, 1});
    return at::tanh(mixed) * (1 + input.t.view({-1, 1, 1}));
  }
};

SamplingConfig settings(SamplerKind kind, int64_t steps) {
  SamplingConfig config;
  config.sampler = kind;
  config.steps = steps;
  config.time_schedule = TimeGrid::kUniform;
  return config;
}

at::Tensor sample(const SamplerModel& model, const SamplingConfig& config,
                  const std::vector<int64_t>& samples, const SampleConditions& conditions = {}) {
  return sample_latents(model, config, draw_sampler(config, samples, kLength, kWidth), conditions).latents;
}

TEST(Sampler,
     OdeCarriesNoiseToTheGaussiansQuantile) {  // first-order: error halves with the step (ratio within 15 %)
  GaussianDenoiser network;
  const SamplerModel model{network, {false, false, false}, kNoise, 1e-6};
  const auto error = [&](int64_t steps) {
    const SamplingConfig config = settings(SamplerKind::kOde, steps);
    const at::Tensor eps = draw_sampler(config, sample_range(0, 5), kLength, kWidth).eps0;
    return (sample(model, config, sample_range(0, 5)) - (kMean + kDeviation * eps))
        .abs()
        .max()
        .item<double>();
  };
  const double coarse = error(64), fine = error(128);
  EXPECT_LT(fine, 0.05);
  EXPECT_NEAR(coarse / fine, 2.0, 0.3);
}

// For Gaussian data every step is linear, so the spread of the samples about the mean follows from one number
// a step: going back by a gives sqrt(a^2 d^2 + (1 - a)^2 s^2), Euler multiplies by 1 - r + r k. (The
// published SDE adds less noise than the path has at a t, so that it narrows the distribution: here far below
// the data's deviation.)
// The paper's update moves the state from before that noise, with the gain k of the noisier one: the mean
// stays, and the deviation is that of (1 - r) z + r k z_b.
double known_deviation(const std::vector<double>& times, double gamma, SdeUpdate update) {
  double deviation = kNoise;
  for (size_t i = 0; i + 1 < times.size(); ++i) {
    const bool last = i + 2 == times.size();
    const double start = times[i], a = last ? 1.0 : 1.0 - gamma * (times[i + 1] - start), t = a * start;
    const double variance = std::pow(t * kDeviation, 2) + std::pow((1.0 - t) * kNoise, 2);
    const double k = t * kDeviation * kDeviation / variance;
    if (update == SdeUpdate::kPublished) {
      const double r = (times[i + 1] - t) / (1.0 - t);
      deviation = (1.0 - r + r * k) * std::hypot(a * deviation, (1.0 - a) * kNoise);
    } else {
      const double r = (times[i + 1] - start) / (1.0 - start);
      deviation = std::hypot((1.0 - r + r * k * a) * deviation, r * k * (1.0 - a) * kNoise);
    }
  }
  return deviation;
}

TEST(Sampler,
     SdeSpreadsTheSamplesAsItsRecursionSays) {  // 48000 numbers: mean within 0.01, deviation within 2 %
  GaussianDenoiser network;
  const SamplerModel model{network, {false, false, false}, kNoise, 1e-6};
  SamplingConfig config = settings(SamplerKind::kSde, 8);
  std::vector<double> deviations;
  for (const SdeUpdate update : {SdeUpdate::kPublished, SdeUpdate::kPaper}) {
    for (const double gamma : {0.5, 1.5}) {
      config.gamma = gamma;
      config.sde_update = update;
      const at::Tensor latents = sample(model, config, sample_range(0, 2000));
      const double expected = known_deviation(draw_time_grid(config), gamma, update);
      EXPECT_NEAR(latents.mean().item<double>(), kMean, 0.01);
      EXPECT_NEAR(latents.std().item<double>(), expected, 0.02 * expected) << gamma;
      deviations.push_back(expected);
    }
    EXPECT_NEAR(known_deviation(draw_time_grid(settings(SamplerKind::kSde, 1000)), 0.0, update), kDeviation,
                0.01);
  }
  EXPECT_GT(std::abs(deviations[1] - deviations[3]), 0.1);  // the updates are told apart at gamma 1.5
}

TEST(Sampler, SdeWithoutGammaIsTheOde) {
  MixingDenoiser network;
  const SamplerModel model{network, {true, true, false}, kNoise, 0.05};
  SamplingConfig ode = settings(SamplerKind::kOde, 7), sde = settings(SamplerKind::kSde, 7);
  const at::Tensor plain = sample(model, ode, {0, 1, 2});
  std::vector<at::Tensor> noisy;
  for (const SdeUpdate update : {SdeUpdate::kPublished, SdeUpdate::kPaper}) {
    sde.sde_update = update;
    sde.gamma = 0.0;
    EXPECT_TRUE(at::equal(sample(model, sde, {0, 1, 2}), plain));
    sde.gamma = 1e-6;  // by the SDE's own steps
    EXPECT_TRUE(all_close(sample(model, sde, {0, 1, 2}), plain, 1e-4, 1e-4));
    sde.gamma = 1.0;
    noisy.push_back(sample(model, sde, {0, 1, 2}));
    EXPECT_FALSE(all_close(noisy.back(), plain, 1e-3, 1e-3));
  }
  EXPECT_FALSE(all_close(noisy[0], noisy[1], 1e-3, 1e-3));
}

// Largest error of the endpoint against the closed form mu + sd eps, in doubles.
double endpoint_error(SamplerKind kind, int64_t steps, int64_t* calls = nullptr) {
  GaussianDenoiser network;
  const SamplerModel model{network, {false, false, false}, kNoise, 1e-9};
  SamplerDraws draws = draw_sampler(settings(kind, steps), sample_range(0, 5), kLength, kWidth);
  draws.eps0 = draws.eps0.to(at::kDouble);
  const LatentSamples samples = sample_latents(model, settings(kind, steps), draws);
  EXPECT_EQ(samples.forwards, network_calls(settings(kind, steps)));
  if (calls != nullptr) *calls = samples.forwards;
  return (samples.latents - (kMean + kDeviation * draws.eps0)).abs().max().item<double>();
}

// log2 of the error's ratio when the step is halved.
TEST(Sampler, SolversConvergeAtTheirOrder) {
  const auto order = [](SamplerKind kind) {
    return std::log2(endpoint_error(kind, 128) / endpoint_error(kind, 256));
  };
  EXPECT_NEAR(order(SamplerKind::kOde), 1.0, 0.1);
  EXPECT_NEAR(order(SamplerKind::kHeun), 2.0, 0.1);
  EXPECT_NEAR(order(SamplerKind::kMultistep), 2.0, 0.1);
}

TEST(Sampler, SecondOrderNeedsFewerCallsForTheSameError) {
  int64_t heun = 0, multistep = 0, euler = 0;
  const double target = endpoint_error(SamplerKind::kOde, 128, &euler);
  EXPECT_LT(endpoint_error(SamplerKind::kHeun, 32, &heun), target);
  EXPECT_LT(endpoint_error(SamplerKind::kMultistep, 32, &multistep), target);
  EXPECT_EQ(euler, 128);
  EXPECT_EQ(heun, 2 * 32 - 1);  // the last step is Euler's
  EXPECT_EQ(multistep, 32);
}

TEST(Sampler, MultistepStaysFiniteOnAnyGrid) {  // steps that grow a thousandfold, and the random grid
  MixingDenoiser network;
  const SamplerModel model{network, {true, true, false}, kNoise, 0.05};
  SamplingConfig config = settings(SamplerKind::kMultistep, 4);
  config.times = "0.001,0.0011,0.6,0.61";
  const at::Tensor latents = sample(model, config, sample_range(0, 4));
  EXPECT_LT(latents.abs().max().item<double>(), 10.0);
}

// Notes the guidance scale and the time of each call.
class NotingDenoiser : public MixingDenoiser {
 public:
  at::Tensor features(const DenoiserInput& input) override {
    seen.emplace_back(input.t[0].item<double>(), input.w[0].item<double>());
    return MixingDenoiser::features(input);
  }
  std::vector<std::pair<double, double>> seen;
};

TEST(Sampler, GuidanceFollowsItsScheduleAtTheTimeOfTheCall) {
  NotingDenoiser network;
  const SamplerModel model{network, {true, true, false}, kNoise, 0.05};
  SamplingConfig config = settings(SamplerKind::kSde, 4);
  config.gamma = 1.0;
  config.self_cond_cfg_schedule = "0:1,1:3";
  sample(model, config, {0});
  ASSERT_EQ(network.seen.size(), 4u);
  for (const auto& [t, w] : network.seen) EXPECT_NEAR(w, 1.0 + 2.0 * t, 1e-6);
  EXPECT_NEAR(network.seen[2].first, 0.375, 1e-6);  // back from 0.5 by a quarter
}

TEST(Sampler, SampleConditionGuidanceOnlyInItsInterval) {
  MixingDenoiser network;
  const SamplerModel model{network, {true, true, false}, kNoise, 0.05};
  SamplingConfig config = settings(SamplerKind::kOde, 4);
  config.cfg = 7.0;  // not looked at
  config.cfg_schedule = "2@0.25-0.75";
  const at::Tensor mask = at::zeros({1, kLength}, at::kBool);
  mask.slice(1, 0, 1).fill_(true);
  const SampleConditions conditions{at::ones({1, kLength, kWidth}), mask, {}};
  const LatentSamples samples =
      sample_latents(model, config, draw_sampler(config, {0}, kLength, kWidth), conditions);
  EXPECT_EQ(samples.forwards, 4);
  EXPECT_EQ(samples.rows, 1 + 2 + 2 + 1);
}

TEST(Sampler, OwnTimesAreWalked) {
  NotingDenoiser network;
  const SamplerModel model{network, {true, true, false}, kNoise, 0.05};
  SamplingConfig config = settings(SamplerKind::kOde, 99);
  config.times = "0.25,0.5";
  sample(model, config, {0});
  std::vector<double> times;
  for (const auto& [t, w] : network.seen) times.push_back(t);
  EXPECT_EQ(times, (std::vector<double>{0.0, 0.25, 0.5}));
}

// Known positions ride the path: at every time t they stand at t x + (1 - t) s eps, and end at x.
TEST(Sampler, KnownLatentsKeepTheNoiseOfTheirTime) {
  MixingDenoiser network;
  const SamplerModel model{network, {true, true, false}, kNoise, 0.05};
  for (const SamplerKind kind : {SamplerKind::kOde, SamplerKind::kHeun, SamplerKind::kMultistep}) {
    const SamplingConfig config = settings(kind, 6);
    const SamplerDraws draws = draw_sampler(config, {3, 4}, kLength, kWidth);
    const at::Tensor x = normal({11, Purpose::kNoise}, {0, 1}, {kLength, kWidth});
    SampleConditions conditions;
    conditions.known.latents = x;
    conditions.known.mask = at::zeros({2, kLength}, at::kBool);
    conditions.known.mask.slice(1, 1, 3).fill_(true);
    const auto part = [](const at::Tensor& whole) { return whole.slice(1, 1, 3); };
    const LatentSamples samples =
        sample_latents(model, config, draws, conditions, [&](const SamplerStep& step) {
          EXPECT_TRUE(
              all_close(part(step.z), part(step.t * x + (1 - step.t) * kNoise * draws.eps0), 1e-4, 1e-4));
          EXPECT_TRUE(at::equal(part(step.x_hat), part(x)));
        });
    EXPECT_TRUE(all_close(part(samples.latents), part(x), 1e-4, 1e-4));
    // What is free feels what is known.
    EXPECT_FALSE(all_close(samples.latents, sample_latents(model, config, draws).latents, 1e-2, 1e-2));
  }
}

TEST(Sampler, KnownLatentsAreRefreshedBetweenSteps) {
  MixingDenoiser network;
  const SamplerModel model{network, {true, true, false}, kNoise, 0.05};
  const SamplingConfig config = settings(SamplerKind::kOde, 3);
  SampleConditions conditions;
  conditions.known.latents = at::zeros({1, kLength, kWidth});
  conditions.known.mask = at::ones({1, kLength}, at::kBool);
  int asked = 0;
  conditions.known.refresh = [&](const at::Tensor& x_hat) { return x_hat + static_cast<double>(++asked); };
  const at::Tensor latents =
      sample_latents(model, config, draw_sampler(config, {0}, kLength, kWidth), conditions).latents;
  EXPECT_EQ(asked, 2);  // not after the last step
  EXPECT_TRUE(all_close(latents, at::full({1, kLength, kWidth}, 3.0), 1e-5, 1e-5));
}

TEST(Sampler, SampleDependsOnItsIndexOnly) {  // 1e-5
  MixingDenoiser network;
  const SamplerModel model{network, {true, true, false}, kNoise, 0.05};
  const SamplingConfig config = settings(SamplerKind::kSde, 6);
  const at::Tensor whole = sample(model, config, sample_range(0, 16));
  for (const int64_t batch : {1, 3}) {
    for (int64_t first = 0; first < 16; first += batch) {
      const int64_t count = std::min<int64_t>(batch, 16 - first);
      const at::Tensor part = sample(model, config, sample_range(first, count));
      ASSERT_TRUE(all_close(part, whole.slice(0, first, first + count), 1e-5, 1e-5))
          << batch << " from " << first;
    }
  }
  EXPECT_TRUE(all_close(sample(model, config, {9, 2}), at::stack({whole[9], whole[2]}), 1e-5, 1e-5));
  SamplingConfig other = config;
  other.seed = 1;
  EXPECT_FALSE(all_close(sample(model, other, {0}), whole.slice(0, 0, 1), 1e-2, 1e-2));
}

SampleConditions first_positions(int64_t rows, int64_t count) {
  const at::Tensor mask = at::zeros({rows, kLength}, at::kBool);
  mask.slice(1, 0, count).fill_(true);
  return {normal({11, Purpose::kNoise}, sample_range(0, rows), {kLength, kWidth}), mask, {}};
}

TEST(Sampler, ConditionStaysAtEveryStep) {
  MixingDenoiser network;
  const SamplerModel model{network, {true, false, false}, kNoise, 0.05};
  SamplingConfig config = settings(SamplerKind::kSde, 5);
  config.cfg = 2.0;
  const SampleConditions conditions = first_positions(3, 2);
  const at::Tensor clean = conditions.latents.slice(1, 0, 2);
  int seen = 0;
  const auto draws = draw_sampler(config, sample_range(0, 3), kLength, kWidth);
  const LatentSamples samples =
      sample_latents(model, config, draws, conditions, [&](const SamplerStep& step) {
        EXPECT_TRUE(at::equal(step.z.slice(1, 0, 2), clean));
        EXPECT_TRUE(at::equal(step.x_hat.slice(1, 0, 2), clean));
        EXPECT_EQ(step.t, draws.times[step.index + 1]);
        ++seen;
      });
  EXPECT_EQ(seen, 5);
  EXPECT_EQ(samples.forwards, 5);
  EXPECT_EQ(
      samples.rows,
      3 * (2 + 4 * 4));  // first step: with and without condition; then each with both self-condition halves
}

TEST(Sampler, GuidanceOnTheConditionIsAnExtrapolation) {  // one ODE step, w = 1: linear in cfg, 1e-5
  MixingDenoiser network;
  const SamplerModel model{network, {true, true, false}, kNoise, 0.05};
  const SampleConditions conditions = first_positions(2, 2);
  const auto with_scale = [&](double scale) {
    SamplingConfig config = settings(SamplerKind::kOde, 1);
    config.cfg = scale;
    return sample(model, config, {0, 1}, conditions);
  };
  const at::Tensor free = with_scale(0.0), plain = with_scale(1.0);
  EXPECT_FALSE(all_close(free, plain, 1e-2, 1e-2));
  EXPECT_TRUE(all_close(with_scale(3.0), free + 3.0 * (plain - free), 1e-5, 1e-5));
}

TEST(Sampler, RecordsNoGradients) {
  MixingDenoiser network;
  const SamplerModel model{network, {true, true, false}, kNoise, 0.05};
  SamplingConfig config = settings(SamplerKind::kOde, 2);
  SamplerDraws draws = draw_sampler(config, {0}, kLength, kWidth);
  draws.eps0.requires_grad_(true);
  EXPECT_FALSE(sample_latents(model, config, draws).latents.requires_grad());
}

TEST(Sampler, RefusesWhatDoesNotFit) {
  MixingDenoiser network;
  const SamplerModel model{network, {true, true, false}, kNoise, 0.05};
  SamplingConfig config = settings(SamplerKind::kOde, 2);
  EXPECT_THROW(sample(model, config, {0, 1}, first_positions(3, 2)), Error);
  EXPECT_THROW(sample_latents(model, config, {{0.0}, at::zeros({1, 2, 3}), {}}), Error);
  EXPECT_THROW(sample_latents(model, config, {{0.0, 1.0}, at::zeros({2, 3}), {}}), Error);
}

}  // namespace
}  // namespace elf
