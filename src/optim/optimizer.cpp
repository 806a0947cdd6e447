#include "elf/optim/optimizer.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "elf/base/error.h"
#include "elf/optim/adamw.h"
#include "elf/optim/muon.h"
#include "elf/optim/nadam.h"

namespace elf {
namespace {

class MuonAndNesterovAdam final : public Optimizer {
 public:
  MuonAndNesterovAdam(const ParamList& matrices, const ParamList& rest, double momentum, Ranks* ranks)
      : muon_(matrices, momentum, ranks), adam_(rest) {}

  TensorMap state() const override {
    TensorMap all = muon_.state();
    all.merge(adam_.state());
    return all;
  }
  void apply(double lr, int64_t k) override {
    muon_.apply(lr, k);
    adam_.apply(lr, k);
  }

 private:
  Muon muon_;
  NesterovAdam adam_;
};

// Names joined, the first few of many.
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 20;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > kShown) text += cat(" and ", names.size() - kShown, " more");
  return text;
}

}  // namespace

void Optimizer::step(double lr) {
  at::NoGradGuard no_grad;
  apply(lr, ++steps_);
}

void Optimizer::load_state(const TensorMap& state, int64_t steps) {
  if (steps < 0) usage_error("optimiser state: step count ", steps, ", expected 0 or more");
  copy_tensors(state, this->state(), "optimiser state");
  steps_ = steps;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, const ParamList& params,
                                          Ranks* ranks) {
  if (config.kind == OptimizerKind::kAdamW) {
    return std::make_unique<AdamW>(params, config.adam_b1, config.adam_b2, config.weight_decay);
  }
  ParamList matrices, rest;
  for (const ParamRef& param : params) (param.is_matrix() ? matrices : rest).push_back(param);
  return std::make_unique<MuonAndNesterovAdam>(matrices, rest, config.muon_momentum, ranks);
}

void copy_tensors(const TensorMap& from, const TensorMap& into, const std::string& what) {
  std::vector<std::string> missing, unexpected, misshaped;
  for (const auto& [name, tensor] : into) {
    const auto found = from.find(name);
    if (found == from.end()) {
      missing.push_back(name);
    } else if (found->second.sizes() != tensor.sizes()) {
      misshaped.push_back(cat(name, " is ", found->second.sizes(), ", expected ", tensor.sizes()));
    }
  }
  for (const auto& [name, tensor] : from) {
    if (!into.count(name)) unexpected.push_back(name);
  }
  if (!missing.empty() || !unexpected.empty() || !misshaped.empty()) {
    std::string text = what + " does not fit the network";
    if (!missing.empty()) text += "; missing: " + some_of(missing);
    if (!unexpected.empty()) text += "; unexpected: " + some_of(unexpected);
    if (!misshaped.empty()) text += "; wrong shape: " + some_of(misshaped);
    usage_error(text, ". Was it made with another configuration?");
  }
  at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : into) at::Tensor(tensor).copy_(from.at(name));
}

std::vector<at::Tensor> gradients_or_zeros(const ParamList& params) {
  std::vector<at::Tensor> gradients;
  gradients.reserve(params.size());
  for (const ParamRef& param : params) {
    const at::Tensor& gradient = param.tensor.grad();
    gradients.push_back(gradient.defined() ? gradient : at::zeros_like(param.tensor));
  }
  return gradients;
}

}  // namespace elf
