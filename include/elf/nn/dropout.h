// Dropout whose mask is a pure function of names: equal for every batch split, resume and device.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace elf::nn {

// Which training forward this is.
struct DropoutKey {
  uint64_t seed = 0;
  int64_t step = 0;              // optimiser step
  std::vector<int64_t> samples;  // [B] index of each row in the step
  int64_t pass = 0;              // < 4: forwards of one step that must not share their masks
};

enum class DropoutSite { kAttention = 0, kSwiGlu = 1 };

// x [B, ...] -> x mask / (1 - probability), the mask being 0 with that probability.
at::Tensor dropout(const at::Tensor& x, double probability, const DropoutKey& key, int64_t block,
                   DropoutSite site);

}  // namespace elf::nn
