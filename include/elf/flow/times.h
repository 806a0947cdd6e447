// Time grids of the samplers (docs/ALGORITHM.md section 4): N steps take N + 1 values, from 0 (noise) to 1
// (data), not decreasing.
#pragma once

#include <cstdint>
#include <vector>

#include "elf/config/sampling_config.h"

namespace elf {

// kUniform: k / N. kLogitNormal: the inner values are sigmoid(p_mean + p_std n), sorted, for the N - 1
// standard normals `normals`. kLogitNormalQuantiles: the same with n at the quantiles k / N, no chance in it.
// Only kLogitNormal reads `normals`. Throws Error (usage) when steps < 1 or the number of normals is not N
// - 1.
std::vector<double> time_grid(TimeGrid kind, int64_t steps, double p_mean, double p_std,
                              const std::vector<double>& normals = {});

// The grid of a sampling run: config.times where it is given, else of time_schedule, its normals drawn by
// (config.seed, kSampleGrid): one grid per run, so that a sample does not depend on its batch. Throws Error
// (usage) for a list that is none.
std::vector<double> draw_time_grid(const SamplingConfig& config);

}  // namespace elf
