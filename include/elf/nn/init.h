// Initial values of weights, each a pure function of (seed, name): adding or leaving out a layer changes no
// other one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace elf::nn {

enum class Init {
  kXavierUniform,  // U(-b, b), b = sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010)
  kSmallNormal,    // N(0, 0.02^2)
  kZero,
  kOne,
};

// Overwrites `weight` (any device) in place; fan_in and fan_out matter for kXavierUniform only.
void initialise(const at::Tensor& weight, Init init, uint64_t seed, const std::string& name, int64_t fan_in,
                int64_t fan_out);

}  // namespace elf::nn
