// The update rules behind one interface (docs/ALGORITHM.md section 3, "Optimiser"). State goes by parameter
// name, never by order.
#pragma once

#include <cstdint>
#include <memory>

#include "elf/config/optimizer_config.h"
#include "elf/optim/parameters.h"
#include "elf/tensor/safetensors.h"

namespace elf {

class Ranks;

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // One update with the gradients that the parameters hold (clip them before). A parameter without gradient
  // is updated as if it were zero: its momentum decays. In place, without recording gradients.
  void step(double lr);

  // Updates made so far.
  int64_t steps() const { return steps_; }

  // "<name>:momentum_buffer" for matrices under Muon, "<name>:exp_avg" and "<name>:exp_avg_sq" for everything
  // else, float32, shaped as the parameter. The tensors are the live buffers: write them to disk or clone
  // them before the next step.
  virtual TensorMap state() const = 0;

  // Takes over values and step count. Throws Error (usage) listing every missing, unexpected and mis-shaped
  // tensor; nothing is changed then.
  void load_state(const TensorMap& state, int64_t steps);

  // The rule itself: update number k (1 at the first step).
  virtual void apply(double lr, int64_t k) = 0;

 private:
  int64_t steps_ = 0;
};

// kMuon: Muon for the matrices (its work divided among `ranks`, null: alone) and Nesterov Adam for the rest;
// kAdamW: AdamW for all.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const ParamList& params,
                                          Ranks* ranks = nullptr);

// Copies `from` into the tensors of the same names of `into`, after checking that names and shapes are the
// same in both. `what` begins the message: "optimiser state". Throws Error (usage) listing all differences.
void copy_tensors(const TensorMap& from, const TensorMap& into, const std::string& what);

// The gradients of `params` in order, zeros where there is none.
std::vector<at::Tensor> gradients_or_zeros(const ParamList& params);

}  // namespace elf
