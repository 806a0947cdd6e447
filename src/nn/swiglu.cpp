#include "elf/nn/swiglu.h"

#include <torch/csrc/autograd/custom_function.h>

#include "kernels.h"

namespace elf::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor forward_only(const at::Tensor& ab) {
  const int64_t inner = ab.size(-1) / 2;
  at::Tensor gate = at::silu(ab.narrow(-1, 0, inner));
  return gate.mul_(ab.narrow(-1, inner, inner));  // in place: nobody else holds the gate
}

struct GatedSilu : public torch::autograd::Function<GatedSilu> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& ab) {
    ctx->save_for_backward({ab});
    return forward_only(ab);
  }
  // Both halves are written into one tensor: no concatenation.
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const at::Tensor ab = ctx->get_saved_variables()[0];
    const int64_t inner = ab.size(-1) / 2;
    const at::Tensor a = ab.narrow(-1, 0, inner), b = ab.narrow(-1, inner, inner);
    const at::Tensor grad_ab = at::empty_like(ab);
    at::Tensor grad_a = grad_ab.narrow(-1, 0, inner), grad_b = grad_ab.narrow(-1, inner, inner);
    const at::Tensor& grad = grads[0];
    at::mul_out(grad_b, grad, at::silu(a));
    at::silu_backward_out(grad_a, at::mul(grad, b), a);
    return {grad_ab};
  }
};

}  // namespace

at::Tensor gated_silu(const at::Tensor& ab) {
  return needs_graph({ab}) ? GatedSilu::apply(ab) : forward_only(ab);
}

at::Tensor SwiGlu::operator()(const at::Tensor& x,
                              const std::function<at::Tensor(const at::Tensor&)>& on_product) const {
  const at::Tensor product = gated_silu(w12(x));
  return w3(on_product ? on_product(product) : product);
}

int64_t swiglu_inner(int64_t hidden_size, double mlp_ratio) {
  const auto wide = static_cast<int64_t>(static_cast<double>(hidden_size) * mlp_ratio);
  return static_cast<int64_t>(static_cast<double>(wide) * 2 / 3);
}

}  // namespace elf::nn
