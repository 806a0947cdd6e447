// Adam with Nesterov look-ahead, Muon's companion for vectors and tokens: b1 0.9, b2 0.999, eps 1e-8, no
// weight decay.
//   m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2
//   m_hat = b1 m / (1 - b1^(k+1)) + (1 - b1) g / (1 - b1^k),   v_hat = v / (1 - b2^k)
//   p <- p - lr m_hat / (sqrt(v_hat) + eps)
#pragma once

#include <vector>

#include "elf/optim/optimizer.h"

namespace elf {

class NesterovAdam final : public Optimizer {
 public:
  explicit NesterovAdam(const ParamList& params);
  TensorMap state() const override;
  void apply(double lr, int64_t k) override;

 private:
  ParamList params_;
  std::vector<at::Tensor> tensors_, exp_avg_, exp_avg_sq_;
};

}  // namespace elf
