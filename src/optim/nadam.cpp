#include "elf/optim/nadam.h"

#include <ATen/ATen.h>

#include <cmath>

namespace elf {

NesterovAdam::NesterovAdam(const ParamList& params) : params_(params) {
  for (const ParamRef& param : params_) {
    tensors_.push_back(param.tensor.detach());
    exp_avg_.push_back(at::zeros_like(tensors_.back(), at::kFloat));
    exp_avg_sq_.push_back(at::zeros_like(tensors_.back(), at::kFloat));
  }
}

TensorMap NesterovAdam::state() const {
  TensorMap state;
  for (size_t i = 0; i < params_.size(); ++i) {
    state[params_[i].name + ":exp_avg"] = exp_avg_[i];
    state[params_[i].name + ":exp_avg_sq"] = exp_avg_sq_[i];
  }
  return state;
}

void NesterovAdam::apply(double lr, int64_t k) {
  constexpr double kB1 = 0.9, kB2 = 0.999, kEps = 1e-8;
  if (params_.empty()) return;
  const std::vector<at::Tensor> gradients = gradients_or_zeros(params_);
  at::_foreach_mul_(exp_avg_, kB1);
  at::_foreach_add_(exp_avg_, gradients, 1.0 - kB1);
  at::_foreach_mul_(exp_avg_sq_, kB2);
  at::_foreach_addcmul_(exp_avg_sq_, gradients, gradients, 1.0 - kB2);

  std::vector<at::Tensor> look_ahead = at::_foreach_mul(exp_avg_, kB1 / (1.0 - std::pow(kB1, k + 1)));
  at::_foreach_add_(look_ahead, gradients, (1.0 - kB1) / (1.0 - std::pow(kB1, k)));
  std::vector<at::Tensor> denominator = at::_foreach_div(exp_avg_sq_, 1.0 - std::pow(kB2, k));
  at::_foreach_sqrt_(denominator);
  at::_foreach_add_(denominator, kEps);
  at::_foreach_addcdiv_(tensors_, look_ahead, denominator, -lr);
}

}  // namespace elf
