#include "elf/nn/recompute.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace elf::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Carries the part from the forward to the backward pass.
struct Part : torch::CustomClassHolder {
  std::function<at::Tensor(const at::Tensor&)> run;
};

struct Recompute : public torch::autograd::Function<Recompute> {
  static at::Tensor forward(AutogradContext* ctx, const c10::intrusive_ptr<Part>& part, const at::Tensor& x,
                            at::TensorList weights) {
    ctx->saved_data["part"] = c10::IValue::make_capsule(part);
    variable_list kept{x};
    kept.insert(kept.end(), weights.begin(), weights.end());
    ctx->save_for_backward(kept);
    return part->run(x);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto part = c10::static_intrusive_pointer_cast<Part>(ctx->saved_data["part"].toCapsule());
    variable_list inputs = ctx->get_saved_variables();
    inputs[0] = inputs[0].detach().requires_grad_();
    const at::AutoGradMode enable(true);
    const at::Tensor out = part->run(inputs[0]);
    variable_list found = torch::autograd::grad({out}, inputs, {grads[0]}, /*retain_graph=*/false,
                                                /*create_graph=*/false, /*allow_unused=*/true);
    found.insert(found.begin(), at::Tensor());  // none for the part itself
    return found;
  }
};

}  // namespace

at::Tensor recomputed(const std::function<at::Tensor(const at::Tensor&)>& part, const at::Tensor& x,
                      const std::vector<at::Tensor>& weights) {
  if (!at::GradMode::is_enabled()) return part(x);
  auto holder = c10::make_intrusive<Part>();
  holder->run = part;
  return Recompute::apply(holder, x, at::TensorList(weights));
}

}  // namespace elf::nn
