#include "elf/nn/rope.h"

#include <ATen/ATen.h>

#include <cmath>

namespace elf::nn {

RopeTable make_rope_table(int64_t length, int64_t head_dim, at::Device device, double theta) {
  const at::Tensor pairs = at::arange(head_dim / 2, at::kDouble);
  const at::Tensor frequencies = at::exp(pairs * (-2.0 * std::log(theta) / static_cast<double>(head_dim)));
  const at::Tensor angles = at::outer(at::arange(length, at::kDouble), frequencies);
  return {angles.cos().to(device, at::kFloat), angles.sin().to(device, at::kFloat)};
}

at::Tensor rotate(const at::Tensor& x, const RopeTable& table, int64_t prefix) {
  const int64_t length = x.size(2) - prefix;
  const at::Tensor cos = table.cos.narrow(0, 0, length), sin = table.sin.narrow(0, 0, length);
  const at::Tensor data = x.narrow(2, prefix, length).unflatten(-1, {-1, 2});
  const at::Tensor even = data.select(-1, 0), odd = data.select(-1, 1);
  const at::Tensor turned = at::stack({even * cos - odd * sin, even * sin + odd * cos}, -1).flatten(-2);
  return at::cat({x.narrow(2, 0, prefix), turned.to(x.scalar_type())}, 2);
}

}  // namespace elf::nn
