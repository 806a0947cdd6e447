// A scalar in [0, 1] (flow time) or above (guidance scale) as a vector: sinusoids, then a small network.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "elf/nn/linear.h"

namespace elf::nn {

inline constexpr int64_t kTimestepFeatures = 256;

// s [B] -> [B, 256] f32: [cos(s f_k), sin(s f_k)], f_k = exp(-ln(10000) k / 128), k = 0 .. 127. s is used as
// it is, not scaled.
at::Tensor timestep_features(const at::Tensor& s);

struct TimestepEmbedder {
  Linear mlp_0;  // 256 -> H
  Linear mlp_2;  // H -> H

  // s [B] -> [B, H]
  at::Tensor operator()(const at::Tensor& s) const;
};

}  // namespace elf::nn
