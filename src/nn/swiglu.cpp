#include "elf/nn/swiglu.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "elf/tensor/parallel.h"
#include "kernels.h"
#include "passes.h"

namespace elf::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

ELF_VECTOR_CLONES void gate_rows(const float* __restrict ab, int64_t rows, int64_t inner,
                                 float* __restrict out) {
  for (int64_t row = 0; row < rows; ++row, ab += 2 * inner, out += inner) {
    ELF_SHORT_LOOP for (int64_t i = 0; i < inner; ++i) out[i] =
        ab[i] * ab[inner + i] / (1.0f + fast_exp(-ab[i]));
  }
}

// The same of ab + bias, which takes the place of ab.
ELF_VECTOR_CLONES void gate_rows_of_sum(float* __restrict ab, const float* __restrict bias, int64_t rows,
                                        int64_t inner, float* __restrict out) {
  for (int64_t row = 0; row < rows; ++row, ab += 2 * inner, out += inner) {
    ELF_SHORT_LOOP for (int64_t i = 0; i < inner; ++i) {
      const float a = ab[i] + bias[i], b = ab[inner + i] + bias[inner + i];
      ab[i] = a;
      ab[inner + i] = b;
      out[i] = a * b / (1.0f + fast_exp(-a));
    }
  }
}

// With s = sigmoid(a): d(a s b) = g b s (1 + a (1 - s)) da + g a s db.
ELF_VECTOR_CLONES void gate_rows_backward(const float* __restrict grad, const float* __restrict ab,
                                          int64_t rows, int64_t inner, float* __restrict grad_ab) {
  for (int64_t row = 0; row < rows; ++row, grad += inner, ab += 2 * inner, grad_ab += 2 * inner) {
    ELF_SHORT_LOOP for (int64_t i = 0; i < inner; ++i) {
      const float a = ab[i], s = 1.0f / (1.0f + fast_exp(-a));
      grad_ab[i] = grad[i] * ab[inner + i] * s * (1.0f + a * (1.0f - s));
      grad_ab[inner + i] = grad[i] * a * s;
    }
  }
}

}  // namespace

at::Tensor gated_silu_forward(const at::Tensor& ab, const at::Tensor& bias) {
  const int64_t inner = ab.size(-1) / 2;
  if (!on_cpu_in_float(ab)) return at::silu(ab.narrow(-1, 0, inner)) * ab.narrow(-1, inner, inner);
  std::vector<int64_t> sizes = ab.sizes().vec();
  sizes.back() = inner;
  const at::Tensor out = at::empty(sizes, ab.options().requires_grad(false));
  const float* in_data = ab.const_data_ptr<float>();
  const float* bias_data = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
  float* changed = bias.defined() ? ab.data_ptr<float>() : nullptr;
  float* out_data = out.data_ptr<float>();
  parallel_for(ab.numel() / std::max<int64_t>(1, 2 * inner), rows_per_piece(2 * inner),
               [=](int64_t begin, int64_t end) {
                 if (changed) {
                   gate_rows_of_sum(changed + begin * 2 * inner, bias_data, end - begin, inner,
                                    out_data + begin * inner);
                   return;
                 }
                 gate_rows(in_data + begin * 2 * inner, end - begin, inner, out_data + begin * inner);
               });
  return out;
}

// Both halves are written into one tensor: no concatenation.
at::Tensor gated_silu_backward(const at::Tensor& grad, const at::Tensor& ab) {
  const int64_t inner = ab.size(-1) / 2;
  const at::Tensor grad_ab = at::empty_like(ab);
  if (on_cpu_in_float(ab)) {
    const float *g_data = grad.const_data_ptr<float>(), *in_data = ab.const_data_ptr<float>();
    float* out_data = grad_ab.data_ptr<float>();
    parallel_for(ab.numel() / std::max<int64_t>(1, 2 * inner), rows_per_piece(2 * inner),
                 [=](int64_t begin, int64_t end) {
                   gate_rows_backward(g_data + begin * inner, in_data + begin * 2 * inner, end - begin, inner,
                                      out_data + begin * 2 * inner);
                 });
    return grad_ab;
  }
  const at::Tensor a = ab.narrow(-1, 0, inner), b = ab.narrow(-1, inner, inner);
  at::Tensor grad_a = grad_ab.narrow(-1, 0, inner), grad_b = grad_ab.narrow(-1, inner, inner);
  at::mul_out(grad_b, grad, at::silu(a));
  at::silu_backward_out(grad_a, at::mul(grad, b), a);
  return grad_ab;
}

namespace {

struct GatedSilu : public torch::autograd::Function<GatedSilu> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& ab) {
    ctx->save_for_backward({ab});
    return gated_silu_forward(ab);
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    return {gated_silu_backward(grads[0].contiguous(), ctx->get_saved_variables()[0])};
  }
};

}  // namespace

at::Tensor gated_silu(const at::Tensor& ab) {
  const at::Tensor whole = ab.contiguous();
  return needs_graph({whole}) ? GatedSilu::apply(whole) : gated_silu_forward(whole);
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
