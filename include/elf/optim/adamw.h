// Adam with decoupled weight decay (Loshchilov and Hutter, 2019), eps 1e-8; ATen's fused kernel.
//   p <- (1 - lr wd) p,   m, v as in Adam,   p <- p - lr m / (1 - b1^k) / (sqrt(v / (1 - b2^k)) + eps)
#pragma once

#include <vector>

#include "elf/optim/optimizer.h"

namespace elf {

class AdamW final : public Optimizer {
 public:
  AdamW(const ParamList& params, double b1, double b2, double weight_decay);
  TensorMap state() const override;
  void apply(double lr, int64_t k) override;

 private:
  ParamList params_;
  std::vector<at::Tensor> tensors_, exp_avg_, exp_avg_sq_, step_counts_;
  double b1_, b2_, weight_decay_;
};

}  // namespace elf
