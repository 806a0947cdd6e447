#include "elf/optim/adamw.h"

#include <ATen/ATen.h>

namespace elf {

AdamW::AdamW(const ParamList& params, double b1, double b2, double weight_decay)
    : params_(params), b1_(b1), b2_(b2), weight_decay_(weight_decay) {
  for (const ParamRef& param : params_) {
    tensors_.push_back(param.tensor.detach());
    exp_avg_.push_back(at::zeros_like(tensors_.back(), at::kFloat));
    exp_avg_sq_.push_back(at::zeros_like(tensors_.back(), at::kFloat));
  }
  // The kernel wants a count per tensor; all are the same one.
  if (!params_.empty())
    step_counts_.assign(params_.size(), at::zeros({}, tensors_.front().options().dtype(at::kFloat)));
}

TensorMap AdamW::state() const {
  TensorMap state;
  for (size_t i = 0; i < params_.size(); ++i) {
    state[params_[i].name + ":exp_avg"] = exp_avg_[i];
    state[params_[i].name + ":exp_avg_sq"] = exp_avg_sq_[i];
  }
  return state;
}

void AdamW::apply(double lr, int64_t k) {
  constexpr double kEps = 1e-8;
  if (params_.empty()) return;
  step_counts_.front().fill_(k);
  at::_fused_adamw_(tensors_, gradients_or_zeros(params_), exp_avg_, exp_avg_sq_, {}, step_counts_, lr, b1_,
                    b2_, weight_decay_, kEps,
                    /*amsgrad=*/false, /*maximize=*/false);
}

}  // namespace elf
