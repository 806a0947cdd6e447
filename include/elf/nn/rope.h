// Rotary position embedding (Su et al., 2021) of interleaved pairs: entries (2i, 2i + 1) of a head turn by
// position / theta^(2i / d).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace elf::nn {

inline constexpr double kRopeTheta = 10000.0;

struct RopeTable {
  at::Tensor cos, sin;  // [positions, d / 2] f32
};

// Positions 0 .. length - 1 of heads of even width `head_dim`. The angles are computed in float64.
RopeTable make_rope_table(int64_t length, int64_t head_dim, at::Device device, double theta = kRopeTheta);

// x [B, N, S, d] -> the same shape. The first `prefix` tokens have no position and stay; token prefix + i
// turns to position i.
at::Tensor rotate(const at::Tensor& x, const RopeTable& table, int64_t prefix);

}  // namespace elf::nn
