// Gradients summed over the ranks while the backward pass still runs: c10d's Reducer, in buckets of 25 MiB.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "elf/dist/ranks.h"

namespace elf {

class GradientSync {
 public:
  // `parameters`: leaves that require gradients, the same on all ranks. Alone, nothing is done.
  GradientSync(Ranks& ranks, const std::vector<at::Tensor>& parameters);
  ~GradientSync();
  GradientSync(const GradientSync&) = delete;
  GradientSync& operator=(const GradientSync&) = delete;

  // Call with the loss of a step's last micro-batch, and take the backward pass of what it returns: the
  // gradients gathered so far and those of this pass are summed over the ranks, in an order that does not
  // change from step to step. A parameter that took no part has then a gradient of zeros. Backward passes
  // of other losses only add up on this rank.
  at::Tensor last_of_step(const at::Tensor& loss);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;  // null when alone
};

}  // namespace elf
