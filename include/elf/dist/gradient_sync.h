// Gradients of a step: summed over micro-batches in float64, and over ranks while the last backward pass
// still runs, by c10d's Reducer in buckets of 25 MiB.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "elf/dist/ranks.h"

namespace elf {

class GradientSync {
 public:
  // `parameters`: leaves that require gradients, the same on all ranks.
  GradientSync(Ranks& ranks, const std::vector<at::Tensor>& parameters);
  ~GradientSync();
  GradientSync(const GradientSync&) = delete;
  GradientSync& operator=(const GradientSync&) = delete;

  // The backward pass of a micro-batch's loss; parameters hold no gradient before the first of a step. After
  // the `last` one they hold the sum over all passes and ranks, rounded once: up to that rounding it does not
  // matter how a step is divided (on CUDA ranks are added in float32). Several ranks: every rank calls it
  // with `last` once a step; a parameter that took no part then has a gradient of zeros.
  void backward(const at::Tensor& loss, bool last);

 private:
  void keep();
  void give_back();

  struct Reduction;  // over ranks
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> kept_;          // float64 sums of the passes before the last; undefined: none
  std::unique_ptr<Reduction> reduction_;  // null when alone
};

}  // namespace elf
