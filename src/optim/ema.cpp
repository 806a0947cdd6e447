#include "elf/optim/ema.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "elf/base/error.h"
#include "elf/optim/optimizer.h"

namespace elf {

Ema::Ema(const ParamList& params, double decay, bool warmup) : decay_(decay), warmup_(warmup) {
  if (!(decay >= 0.0 && decay <= 1.0)) usage_error("ema_decay: ", decay, ", expected a number in [0, 1]");
  for (const ParamRef& param : params) {
    weights_.push_back(param.tensor.detach());
    average_list_.push_back(weights_.back().to(at::kFloat, /*non_blocking=*/false, /*copy=*/true));
    averages_[param.name] = average_list_.back();
  }
}

void Ema::update() {
  at::NoGradGuard no_grad;
  const double k = static_cast<double>(++updates_);
  const double decay = warmup_ ? std::min(decay_, (1.0 + k) / (10.0 + k)) : decay_;
  if (weights_.empty()) return;
  at::_foreach_lerp_(average_list_, weights_, 1.0 - decay);
}

void Ema::load(const TensorMap& averages, int64_t updates) {
  if (updates < 0) usage_error("averaged weights: update count ", updates, ", expected 0 or more");
  copy_tensors(averages, averages_, "the file of averaged weights");
  updates_ = updates;
}

}  // namespace elf
