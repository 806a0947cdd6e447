// Root-mean-square norm without mean subtraction or bias (Zhang and Sennrich, 2019):
//   y = x / sqrt(mean(x^2) + eps) * weight,  over the last dimension, statistics in float32.
#pragma once

#include <ATen/core/Tensor.h>

namespace elf::nn {

inline constexpr double kRmsNormEps = 1e-6;

// x [..., C], weight [C] -> [..., C]. One pass forward and one backward on the CPU in float32, ATen's fused
// kernel elsewhere. Differentiable once (no second derivatives) on the CPU.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps = kRmsNormEps);

// The same from plain ATen operations, any device and dtype: the reference of the tests.
at::Tensor rms_norm_plain(const at::Tensor& x, const at::Tensor& weight, double eps = kRmsNormEps);

}  // namespace elf::nn
