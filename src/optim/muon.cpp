#include "elf/optim/muon.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "elf/base/error.h"
#include "elf/tensor/parallel.h"

namespace elf {
namespace {

// Largest batch of matrices worked on at once, in elements: bounds the temporaries (about five times this)
// without costing speed.
constexpr int64_t kGroupElements = int64_t{1} << 24;

// A matrix with fewer elements than this is not worth a thread of its own.
constexpr int64_t kSmall = int64_t{1} << 14;

// m <- b m + (1 - b) g,   u = of_momentum m + of_gradient g, in one pass. A null g is zero.
void look_ahead(const float* g, float* __restrict m, float* __restrict u, int64_t count, float b,
                float of_momentum, float of_gradient) {
  if (g == nullptr) {
    for (int64_t i = 0; i < count; ++i) {
      m[i] = b * m[i];
      u[i] = of_momentum * m[i];
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    m[i] = b * m[i] + (1.0f - b) * g[i];
    u[i] = of_momentum * m[i] + of_gradient * g[i];
  }
}

}  // namespace

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
  const bool divided = ranks_ != nullptr && ranks_->size() > 1;
  for (const Group& group : groups_) {
    const at::Tensor& first = group.tensors.front();
    if (divided || !first.is_cpu() || first.scalar_type() != at::kFloat || first.numel() < kSmall) {
      batches_.push_back(&group);
      continue;
    }
    const double cost = newton_schulz_cost(first.size(0), first.size(1));
    for (size_t i = 0; i < group.tensors.size(); ++i)
      items_.push_back({&group, static_cast<int64_t>(i), cost});
  }
  std::stable_sort(items_.begin(), items_.end(),
                   [](const Item& a, const Item& b) { return a.cost > b.cost; });
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

// Small matrices of one shape: far fewer and larger products.
void Muon::update_batch(const Group& group, const Rates& rates, int64_t turn) const {
  const at::Tensor gradient = at::stack(gradients_or_zeros(group.params)).to(at::kFloat);
  at::Tensor momentum = group.momentum;
  momentum.mul_(momentum_).add_(gradient, 1.0 - momentum_);
  const at::Tensor u = (momentum * rates.of_momentum).add_(gradient, rates.of_gradient);
  std::vector<at::Tensor> tensors = group.tensors;
  at::_foreach_add_(tensors, orthogonalised(u, turn).unbind(0), -rates.lr * group.scale);
}

void Muon::update_one(const Item& item, const Rates& rates) const {
  const at::Tensor momentum = item.group->momentum[item.index];
  const at::Tensor& gradient = item.group->params[static_cast<size_t>(item.index)].tensor.grad();
  const at::Tensor g = gradient.defined() ? gradient.to(at::kFloat).contiguous() : gradient;
  const at::Tensor u = at::empty_like(momentum);
  look_ahead(g.defined() ? g.const_data_ptr<float>() : nullptr, momentum.data_ptr<float>(),
             u.data_ptr<float>(), u.numel(), static_cast<float>(momentum_),
             static_cast<float>(rates.of_momentum), static_cast<float>(rates.of_gradient));
  add_newton_schulz(item.group->tensors[static_cast<size_t>(item.index)], u, -rates.lr * item.group->scale);
}

void Muon::apply(double lr, int64_t k) {
  const double b = momentum_;
  const Rates rates{b / (1.0 - std::pow(b, k + 1)), (1.0 - b) / (1.0 - std::pow(b, k)), lr};
  int64_t turn = 0;
  for (const Group* group : batches_) {
    update_batch(*group, rates, turn);
    turn += static_cast<int64_t>(group->tensors.size());
  }

  // One matrix a thread: no waiting inside products. Those that alone would outlast an even share of the work
  // are done by all threads together.
  double left = 0;
  for (const Item& item : items_) left += item.cost;
  size_t first = 0;
  for (; first < items_.size() && items_[first].cost > left / at::get_num_threads(); ++first) {
    update_one(items_[first], rates);
    left -= items_[first].cost;
  }
  parallel_for(static_cast<int64_t>(items_.size() - first), 1, [&](int64_t begin, int64_t end) {
    const at::NoGradGuard no_grad;
    for (int64_t i = begin; i < end; ++i) update_one(items_[first + static_cast<size_t>(i)], rates);
  });
}

}  // namespace elf
