#include "elf/optim/muon.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "elf/base/error.h"

namespace elf {
namespace {

// Largest batch of matrices worked on at once, in elements: bounds the temporaries (about five times this)
// without costing speed.
constexpr int64_t kGroupElements = int64_t{1} << 24;

}  // namespace

at::Tensor newton_schulz(const at::Tensor& x, int64_t iterations) {
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
  const bool tall = x.size(-2) > x.size(-1);
  at::Tensor y = tall ? x.transpose(-2, -1) : x;
  y = y / (at::linalg_vector_norm(y, 2, at::IntArrayRef{-2, -1}, /*keepdim=*/true) + 1e-8);
  for (int64_t i = 0; i < iterations; ++i) {
    const at::Tensor gram = at::matmul(y, y.transpose(-2, -1));
    const at::Tensor polynomial = at::matmul(gram, gram).mul_(kC).add_(gram, kB);
    y = at::matmul(polynomial, y).add_(y, kA);
  }
  return tall ? y.transpose(-2, -1) : y;
}

Muon::Muon(const ParamList& matrices, double momentum, Ranks* ranks) : momentum_(momentum), ranks_(ranks) {
  for (const ParamRef& param : matrices) {
    if (!param.is_matrix() || param.tensor.dim() != 2) {
      usage_error("Muon updates matrices only: ", param.name, " has shape ", param.tensor.sizes());
    }
    const auto fits = [&](const Group& group) {
      const ParamRef& first = group.params.front();
      return first.tensor.sizes() == param.tensor.sizes() && first.fan_in == param.fan_in &&
             first.fan_out == param.fan_out &&
             static_cast<int64_t>(group.params.size() + 1) * param.tensor.numel() <= kGroupElements;
    };
    auto group = std::find_if(groups_.begin(), groups_.end(), fits);
    if (group == groups_.end()) {
      const double ratio = static_cast<double>(param.fan_out) / static_cast<double>(param.fan_in);
      group = groups_.insert(groups_.end(), Group{{}, {}, {}, std::sqrt(std::max(1.0, ratio))});
    }
    group->params.push_back(param);
    group->tensors.push_back(param.tensor.detach());
  }
  for (Group& group : groups_) {
    const at::Tensor& first = group.tensors.front();
    group.momentum = at::zeros({static_cast<int64_t>(group.tensors.size()), first.size(0), first.size(1)},
                               first.options().dtype(at::kFloat));
  }
}

TensorMap Muon::state() const {
  TensorMap state;
  for (const Group& group : groups_) {
    for (size_t i = 0; i < group.params.size(); ++i) {
      state[group.params[i].name + ":momentum_buffer"] = group.momentum[static_cast<int64_t>(i)];
    }
  }
  return state;
}

at::Tensor Muon::orthogonalised(const at::Tensor& look_ahead, int64_t turn) const {
  const int64_t ranks = ranks_ == nullptr ? 1 : ranks_->size(), count = look_ahead.size(0);
  if (ranks == 1) return newton_schulz(look_ahead);
  const int64_t each = (count + ranks - 1) / ranks;  // the last parts may be short or empty
  const auto part_of = [&](int64_t rank) { return (rank + turn) % ranks; };
  const int64_t first = std::min(count, part_of(ranks_->rank()) * each), own = std::min(each, count - first);
  std::vector<int64_t> sizes = look_ahead.sizes().vec();
  sizes[0] = each;
  at::Tensor mine = at::zeros(sizes, look_ahead.options());
  if (own > 0) mine.narrow(0, 0, own).copy_(newton_schulz(look_ahead.narrow(0, first, own)));
  const at::Tensor by_rank = ranks_->gather(mine);
  std::vector<at::Tensor> parts(static_cast<size_t>(ranks));
  for (int64_t rank = 0; rank < ranks; ++rank)
    parts[static_cast<size_t>(part_of(rank))] = by_rank.narrow(0, rank * each, each);
  return at::cat(parts).narrow(0, 0, count);
}

void Muon::apply(double lr, int64_t k) {
  int64_t turn = 0;
  const double b = momentum_;
  const double of_momentum = b / (1.0 - std::pow(b, k + 1)), of_gradient = (1.0 - b) / (1.0 - std::pow(b, k));
  for (Group& group : groups_) {
    const at::Tensor gradient = at::stack(gradients_or_zeros(group.params)).to(at::kFloat);
    group.momentum.mul_(b).add_(gradient, 1.0 - b);
    const at::Tensor look_ahead = (group.momentum * of_momentum).add_(gradient, of_gradient);
    at::_foreach_add_(group.tensors, orthogonalised(look_ahead, turn).unbind(0), -lr * group.scale);
    turn += static_cast<int64_t>(group.tensors.size());
  }
}

}  // namespace elf
