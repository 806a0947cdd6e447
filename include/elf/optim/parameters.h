// Parameters with roles: what an optimiser must know of each tensor, said by the layer that knows.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace elf {

struct ParamRef {
  std::string name;   // as in the published checkpoints: "blocks.0.attn.qkv.weight"
  at::Tensor tensor;  // the parameter itself (a shared handle, requires grad)
  int64_t fan_in =
      0;  // > 0 for matrices: columns of the map's meaning, whatever the storage order; 0: vector or token
  int64_t fan_out = 0;
  bool is_matrix() const { return fan_in > 0; }
};

using ParamList = std::vector<ParamRef>;

}  // namespace elf
