// Exponential moving average of the weights, float32 whatever the weights are: avg <- d avg + (1 - d) w after
// every optimiser step.
#pragma once

#include <cstdint>
#include <vector>

#include "elf/optim/parameters.h"
#include "elf/tensor/safetensors.h"

namespace elf {

class Ema {
 public:
  // Starts at the present weights. `decay` d in [0, 1]; with `warmup` update k (1 at the first) uses min(d,
  // (1 + k) / (10 + k)), so that a short run does not drag its random initial weights along.
  Ema(const ParamList& params, double decay, bool warmup);

  void update();
  // By parameter name; live tensors.
  const TensorMap& averages() const { return averages_; }
  int64_t updates() const { return updates_; }
  // Throws Error (usage) listing every missing, unexpected and mis-shaped tensor.
  void load(const TensorMap& averages, int64_t updates);

 private:
  std::vector<at::Tensor> weights_, average_list_;  // in the order of the parameters
  TensorMap averages_;                              // the same tensors by name
  double decay_;
  bool warmup_;
  int64_t updates_ = 0;
};

}  // namespace elf
