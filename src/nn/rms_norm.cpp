#include "elf/nn/rms_norm.h"

#include <torch/csrc/autograd/custom_function.h>

#include "elf/tensor/parallel.h"
#include "kernels.h"
#include "passes.h"

namespace elf::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

ELF_VECTOR_CLONES void norm_rows(const float* __restrict x, const float* __restrict w, int64_t rows,
                                 int64_t width, double eps, float* __restrict y, float* __restrict inverse) {
  for (int64_t row = 0; row < rows; ++row, x += width, y += width) {
    const float r = inverse[row] = inverse_rms(x, width, eps);
    for (int64_t i = 0; i < width; ++i) y[i] = x[i] * r * w[i];
  }
}

// With n = x r the normed input and h = g w: dx = r (h - n mean(h n)), and plus, when it is not null; dw, the
// sum over rows of g n, is added to.
ELF_VECTOR_CLONES void norm_rows_backward(const float* __restrict g, const float* __restrict x,
                                          const float* __restrict w, const float* __restrict inverse,
                                          const float* __restrict plus, int64_t rows, int64_t width,
                                          float* __restrict dx, float* __restrict dw) {
  for (int64_t row = 0; row < rows; ++row, g += width, x += width, dx += width) {
    const float r = inverse[row];
    const float dot = sum_of(width, [=](int64_t i) { return g[i] * w[i] * x[i]; });
    const float scale = dot * r * r / static_cast<float>(width);
    for (int64_t i = 0; i < width; ++i) {
      dx[i] = r * (g[i] * w[i] - x[i] * scale);
      dw[i] += g[i] * x[i] * r;
    }
    if (plus == nullptr) continue;
    for (int64_t i = 0; i < width; ++i) dx[i] += plus[i];
    plus += width;
  }
}

}  // namespace

NormPass rms_norm_forward(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const int64_t width = x.size(-1), rows = width == 0 ? 0 : x.numel() / width;
  at::Tensor y = at::empty_like(x), inverse = at::empty({rows}, x.options());
  const float* x_data = x.const_data_ptr<float>();
  const float* w = weight.const_data_ptr<float>();
  float* y_data = y.data_ptr<float>();
  float* inverse_data = inverse.data_ptr<float>();
  parallel_for(rows, rows_per_piece(width), [=](int64_t begin, int64_t end) {
    norm_rows(x_data + begin * width, w, end - begin, width, eps, y_data + begin * width,
              inverse_data + begin);
  });
  return {y, inverse};
}

NormGrads rms_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& inverse, const at::Tensor& plus) {
  const int64_t width = x.size(-1), rows = inverse.numel();
  const int64_t piece = rows_per_piece(width), pieces = (rows + piece - 1) / piece;
  at::Tensor grad_x = at::empty_like(x), grad_w = at::zeros({pieces, width}, x.options());
  const float* g_data = grad.const_data_ptr<float>();
  const float* x_data = x.const_data_ptr<float>();
  const float* w = weight.const_data_ptr<float>();
  const float* inverse_data = inverse.const_data_ptr<float>();
  const float* plus_data = plus.defined() ? plus.const_data_ptr<float>() : nullptr;
  float* dx_data = grad_x.data_ptr<float>();
  float* dw_data = grad_w.data_ptr<float>();
  parallel_for(rows, piece, [=](int64_t begin, int64_t end) {
    norm_rows_backward(g_data + begin * width, x_data + begin * width, w, inverse_data + begin,
                       plus_data ? plus_data + begin * width : nullptr, end - begin, width,
                       dx_data + begin * width, dw_data + begin / piece * width);
  });
  return {grad_x, grad_w.sum(0)};
}

namespace {

struct RmsNorm : public torch::autograd::Function<RmsNorm> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight, double eps) {
    auto [y, inverse] = rms_norm_forward(x, weight, eps);
    ctx->save_for_backward({x, weight, inverse});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    auto [grad_x, grad_w] = rms_norm_backward(grads[0].contiguous(), saved[0], saved[1], saved[2]);
    return {grad_x, grad_w, at::Tensor()};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  if (!on_cpu_in_float(x) || !on_cpu_in_float(weight)) return at::rms_norm(x, weight.sizes(), weight, eps);
  if (needs_graph({x, weight})) return RmsNorm::apply(x.contiguous(), weight, eps);
  return rms_norm_forward(x.contiguous(), weight, eps).y;
}

at::Tensor rms_norm_plain(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor x32 = x.to(at::kFloat);
  const at::Tensor normed = x32 * at::rsqrt(x32.square().mean(-1, /*keepdim=*/true) + eps);
  return (normed * weight).to(x.scalar_type());
}

}  // namespace elf::nn
