#include "elf/flow/times.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "elf/base/error.h"
#include "elf/config/schedules.h"
#include "elf/tensor/random.h"

namespace elf {

std::vector<double> time_grid(TimeGrid kind, int64_t steps, double p_mean, double p_std,
                              const std::vector<double>& normals) {
  if (steps < 1) usage_error("sampling steps: ", steps, ", expected at least 1");
  const size_t inner = static_cast<size_t>(steps - 1);
  if (kind == TimeGrid::kLogitNormal && normals.size() != inner) {
    usage_error("time grid of ", steps, " steps: ", normals.size(), " normals, expected ", inner);
  }
  const auto quantile = [&](size_t k) {  // of the standard normal at (k + 1) / N
    return at::special_ndtri(
               at::scalar_tensor(static_cast<double>(k + 1) / static_cast<double>(steps), at::kDouble))
        .item<double>();
  };
  std::vector<double> times{0.0};
  for (size_t k = 0; k < inner; ++k) {
    if (kind == TimeGrid::kUniform) {
      times.push_back(static_cast<double>(k + 1) / static_cast<double>(steps));
    } else {
      const double n = kind == TimeGrid::kLogitNormal ? normals[k] : quantile(k);
      times.push_back(1.0 / (1.0 + std::exp(-(p_mean + p_std * n))));
    }
  }
  std::sort(times.begin(), times.end());
  times.push_back(1.0);
  return times;
}

std::vector<double> draw_time_grid(const SamplingConfig& config) {
  if (!config.times.empty()) return parse_times(config.times, "times");
  std::vector<double> normals;
  if (config.time_schedule == TimeGrid::kLogitNormal && config.steps > 1) {
    const at::Tensor drawn = normal({config.seed, Purpose::kSampleGrid}, {0}, {config.steps - 1});
    normals.assign(drawn.data_ptr<float>(), drawn.data_ptr<float>() + drawn.numel());
  }
  return time_grid(config.time_schedule, config.steps, config.p_mean, config.p_std, normals);
}

}  // namespace elf
