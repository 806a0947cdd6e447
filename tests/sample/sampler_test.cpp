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
double known_deviation(const std::vector<double>& times, double gamma) {
  double deviation = kNoise;
  for (size_t i = 0; i + 1 < times.size(); ++i) {
    double t = times[i];
    if (i + 2 < times.size()) {
      const double a = 1.0 - gamma * (times[i + 1] - t);
      deviation = std::hypot(a * deviation, (1.0 - a) * kNoise);
      t = a * t;
    }
    const double variance = std::pow(t * kDeviation, 2) + std::pow((1.0 - t) * kNoise, 2);
    const double r = (times[i + 1] - t) / (1.0 - t), k = t * kDeviation * kDeviation / variance;
    deviation *= 1.0 - r + r * k;
  }
  return deviation;
}

TEST(Sampler,
     SdeSpreadsTheSamplesAsItsRecursionSays) {  // 48000 numbers: mean within 0.01, deviation within 2 %
  GaussianDenoiser network;
  const SamplerModel model{network, {false, false, false}, kNoise, 1e-6};
  SamplingConfig config = settings(SamplerKind::kSde, 8);
  for (const double gamma : {0.5, 1.5}) {
    config.gamma = gamma;
    const at::Tensor latents = sample(model, config, sample_range(0, 2000));
    const double expected = known_deviation(draw_time_grid(config), gamma);
    EXPECT_NEAR(latents.mean().item<double>(), kMean, 0.01);
    EXPECT_NEAR(latents.std().item<double>(), expected, 0.02 * expected) << gamma;
  }
  EXPECT_NEAR(known_deviation(draw_time_grid(settings(SamplerKind::kSde, 1000)), 0.0), kDeviation, 0.01);
}

TEST(Sampler, SdeWithoutGammaIsTheOde) {
  MixingDenoiser network;
  const SamplerModel model{network, {true, true, false}, kNoise, 0.05};
  SamplingConfig ode = settings(SamplerKind::kOde, 7), sde = settings(SamplerKind::kSde, 7);
  sde.gamma = 0.0;
  EXPECT_TRUE(at::equal(sample(model, sde, {0, 1, 2}), sample(model, ode, {0, 1, 2})));
  sde.gamma = 1.0;
  EXPECT_FALSE(all_close(sample(model, sde, {0, 1, 2}), sample(model, ode, {0, 1, 2}), 1e-3, 1e-3));
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
  return {normal({11, Purpose::kNoise}, sample_range(0, rows), {kLength, kWidth}), mask};
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
