// Time grids against golden/sampler/time_schedules (1e-6) and their definitions.
#include "elf/flow/times.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "elf/base/error.h"
#include "support/golden.h"

namespace elf {
namespace {

std::vector<double> doubles(const at::Tensor& tensor) {
  const at::Tensor values = tensor.to(at::kDouble).contiguous();
  return {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()};
}

TEST(TimeGrid, AgreesWithGolden) {
  const TensorMap tensors = read_safetensors(test::golden("sampler/time_schedules.safetensors"));
  const nlohmann::json description = test::golden_json("sampler/sampler.json");
  for (const auto& schedule : description.at("time_schedules")) {
    const std::string prefix = std::to_string(schedule.at("index").get<int>()) + "/";
    const bool uniform = schedule.at("schedule") == "uniform";
    const auto normals = tensors.find(prefix + "normal");
    const std::vector<double> times = time_grid(
        uniform ? TimeGrid::kUniform : TimeGrid::kLogitNormal, schedule.at("steps"), schedule.at("p_mean"),
        schedule.at("p_std"), normals == tensors.end() ? std::vector<double>{} : doubles(normals->second));
    const at::Tensor expected = tensors.at(prefix + "times");
    EXPECT_TRUE(test::all_close(at::tensor(at::ArrayRef<double>(times), at::kDouble), expected, 0.0, 1e-6))
        << schedule;
  }
}

TEST(TimeGrid, DrawnOncePerRunFromTheSeed) {
  SamplingConfig config;
  const std::vector<double> times = draw_time_grid(config);
  EXPECT_EQ(times.size(), 33u);
  EXPECT_EQ(times.front(), 0.0);
  EXPECT_EQ(times.back(), 1.0);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_EQ(times, draw_time_grid(config));
  config.seed = 1;
  EXPECT_NE(times, draw_time_grid(config));
}

TEST(TimeGrid, QuantilesAreWhereTheDistributionHasThem) {  // 1e-12: P(T <= t_k) = k / N by the error function
  const int64_t steps = 8;
  const std::vector<double> times = time_grid(TimeGrid::kLogitNormalQuantiles, steps, -1.5, 0.8);
  ASSERT_EQ(times.size(), 9u);
  for (int64_t k = 1; k < steps; ++k) {
    const double n = (std::log(times[k] / (1.0 - times[k])) + 1.5) / 0.8;
    EXPECT_NEAR(0.5 * std::erfc(-n / std::sqrt(2.0)), static_cast<double>(k) / steps, 1e-12);
  }
  EXPECT_EQ(time_grid(TimeGrid::kLogitNormalQuantiles, 1, -1.5, 0.8), (std::vector<double>{0.0, 1.0}));
}

TEST(TimeGrid, RefusesWhatMakesNoGrid) {
  EXPECT_THROW(time_grid(TimeGrid::kUniform, 0, 0, 1), Error);
  EXPECT_THROW(time_grid(TimeGrid::kLogitNormal, 4, 0, 1, {0.1, 0.2}), Error);
}

}  // namespace
}  // namespace elf
