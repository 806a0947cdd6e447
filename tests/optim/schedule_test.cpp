// Learning rates against golden/optimizer (1e-12), clipping and averaging against their formulas.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "elf/base/error.h"
#include "elf/optim/ema.h"
#include "elf/optim/grad_clip.h"
#include "elf/optim/lr_schedule.h"
#include "support/golden.h"

namespace elf {
namespace {

using test::all_close;
using test::golden_json;

TEST(LearningRate, AgreesWithGoldenSchedules) {
  const nlohmann::json description = golden_json("optimizer/optimizer.json");
  for (const auto& schedule : description.at("schedules")) {
    const auto& args = schedule.at("args");
    OptimizerConfig config;
    config.lr = args.at("learning_rate");
    config.min_lr = args.value("min_lr", 0.0);
    config.schedule =
        args.value("schedule", "constant") == "cosine" ? LrSchedule::kCosine : LrSchedule::kConstant;
    for (int64_t step = 0; step < 25; ++step) {
      EXPECT_NEAR(learning_rate(config, 512, step, args.at("num_train_steps"), args.at("num_warmup_steps")),
                  schedule.at("lr").at(step).get<double>(), 1e-12)
          << args << ", step " << step;
    }
  }
}

TEST(LearningRate, PeakFollowsTheBatch) {
  const nlohmann::json description = golden_json("optimizer/optimizer.json");
  for (const auto& example : description.at("effective_lr_examples")) {
    OptimizerConfig config;
    config.blr = example.at("blr");
    const int64_t rows = example.at("global_batch").get<int64_t>() * example.at("grad_accum").get<int64_t>();
    EXPECT_NEAR(peak_learning_rate(config, rows), example.at("lr").get<double>(), 1e-15);
    config.lr = 0.5;
    EXPECT_EQ(peak_learning_rate(config, rows), 0.5);
  }
}

TEST(LearningRate, LineGoesFromPeakToMinimum) {
  OptimizerConfig config;
  config.lr = 1.0;
  config.min_lr = 0.2;
  config.schedule = LrSchedule::kLinear;
  EXPECT_DOUBLE_EQ(learning_rate(config, 1, 2, 12, 4), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(config, 1, 4, 12, 4), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(config, 1, 8, 12, 4), 0.6);
  EXPECT_DOUBLE_EQ(learning_rate(config, 1, 12, 12, 4), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(config, 1, 99, 12, 4), 0.2);
}

ParamList params_with_gradients(const std::vector<std::vector<float>>& gradients) {
  ParamList params;
  for (const auto& values : gradients) {
    const at::Tensor gradient = at::tensor(at::ArrayRef<float>(values), at::kFloat);
    params.push_back({cat("p", params.size()), at::zeros_like(gradient).requires_grad_(true)});
    params.back().tensor.mutable_grad() = gradient;
  }
  return params;
}

TEST(ClipGradients, ScalesToTheNorm) {
  const ParamList params = params_with_gradients({{3, 0}, {4}});
  EXPECT_NEAR(clip_gradients(params, 0).item<double>(), 5.0, 1e-6);  // only measured
  EXPECT_NEAR(clip_gradients(params, 10).item<double>(), 5.0, 1e-6);
  EXPECT_EQ(params[1].tensor.grad().item<float>(), 4.0f);  // small enough: not touched
  EXPECT_NEAR(clip_gradients(params, 1).item<double>(), 5.0, 1e-6);
  EXPECT_NEAR(clip_gradients(params, 0).item<double>(), 1.0, 1e-6);
}

TEST(ClipGradients, LeavesNonFiniteGradientsAlone) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const ParamList params = params_with_gradients({{30, bad}, {40}});
    EXPECT_FALSE(std::isfinite(clip_gradients(params, 1).item<double>()));
    EXPECT_EQ(params[0].tensor.grad()[0].item<float>(), 30.0f);
    EXPECT_EQ(params[1].tensor.grad().item<float>(), 40.0f);
  }
}

TEST(ClipGradients, IgnoresParametersWithoutGradient) {
  ParamList params = params_with_gradients({{3, 0}, {4}});
  params.push_back({"none", at::zeros({2}).requires_grad_(true)});
  EXPECT_NEAR(clip_gradients(params, 1).item<double>(), 5.0, 1e-6);
  EXPECT_FALSE(params.back().tensor.grad().defined());
  EXPECT_EQ(clip_gradients({params.back()}, 1).item<double>(), 0.0);
}

TEST(Ema, FollowsItsFormula) {  // 1e-6 against double arithmetic
  for (const bool warmup : {false, true}) {
    ParamList params{{"p", at::full({2}, 1.0).requires_grad_(true)}};
    Ema ema(params, 0.9, warmup);
    double expected = 1.0;
    for (int k = 1; k <= 200; ++k) {
      at::NoGradGuard no_grad;
      params[0].tensor.fill_(k);
      ema.update();
      const double decay = warmup ? std::min(0.9, (1.0 + k) / (10.0 + k)) : 0.9;
      expected = decay * expected + (1 - decay) * k;
      ASSERT_NEAR(ema.averages().at("p")[1].item<double>(), expected, 1e-6 * expected) << k;
    }
    EXPECT_EQ(ema.updates(), 200);
  }
}

TEST(Ema, LoadsByNameOnly) {
  const ParamList params{{"p", at::ones({2}).requires_grad_(true)}};
  Ema ema(params, 0.9, false);
  ema.load({{"p", at::full({2}, 7.0)}}, 3);
  EXPECT_EQ(ema.averages().at("p")[0].item<float>(), 7.0f);
  EXPECT_EQ(ema.updates(), 3);
  EXPECT_EQ(params[0].tensor[0].item<float>(), 1.0f);
  EXPECT_THROW(ema.load({{"q", at::ones({2})}}, 3), Error);
  EXPECT_THROW(ema.load({{"p", at::ones({3})}}, 3), Error);
}

}  // namespace
}  // namespace elf
