#include "elf/nn/timestep_embedder.h"

#include <ATen/ATen.h>

#include <cmath>

namespace elf::nn {

at::Tensor timestep_features(const at::Tensor& s) {
  constexpr int64_t kHalf = kTimestepFeatures / 2;
  const at::Tensor k = at::arange(kHalf, s.options().dtype(at::kFloat));
  const at::Tensor angles = at::outer(s.to(at::kFloat), at::exp(k * (-std::log(10000.0) / kHalf)));
  return at::cat({angles.cos(), angles.sin()}, -1);
}

at::Tensor TimestepEmbedder::operator()(const at::Tensor& s) const {
  return mlp_2(at::silu(mlp_0(timestep_features(s))));
}

}  // namespace elf::nn
