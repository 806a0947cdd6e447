#include "elf/nn/rms_norm.h"

#include <torch/csrc/autograd/custom_function.h>

#include "elf/tensor/parallel.h"
#include "kernels.h"

namespace elf::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// y and the inverse root mean square of each row; x contiguous.
std::pair<at::Tensor, at::Tensor> forward_cpu(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const int64_t width = x.size(-1), rows = width == 0 ? 0 : x.numel() / width;
  at::Tensor y = at::empty_like(x), inverse = at::empty({rows}, x.options());
  const float* x_data = x.const_data_ptr<float>();
  const float* w = weight.const_data_ptr<float>();
  float* y_data = y.data_ptr<float>();
  float* inverse_data = inverse.data_ptr<float>();
  parallel_for(rows, rows_per_piece(width), [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* in = x_data + row * width;
      float* out = y_data + row * width;
      const float r = inverse_data[row] = inverse_rms(in, width, eps);
      for (int64_t i = 0; i < width; ++i) out[i] = in[i] * r * w[i];
    }
  });
  return {y, inverse};
}

// With n = x r the normed input and h = g w: dx = r (h - n mean(h n)), dw = sum over rows of g n.
std::pair<at::Tensor, at::Tensor> backward_cpu(const at::Tensor& grad, const at::Tensor& x,
                                               const at::Tensor& weight, const at::Tensor& inverse) {
  const int64_t width = x.size(-1), rows = inverse.numel();
  const int64_t piece = rows_per_piece(width), pieces = (rows + piece - 1) / piece;
  at::Tensor grad_x = at::empty_like(x), grad_w = at::zeros({pieces, width}, x.options());
  const float* g_data = grad.const_data_ptr<float>();
  const float* x_data = x.const_data_ptr<float>();
  const float* w = weight.const_data_ptr<float>();
  const float* inverse_data = inverse.const_data_ptr<float>();
  float* dx_data = grad_x.data_ptr<float>();
  float* dw_data = grad_w.data_ptr<float>();
  parallel_for(rows, piece, [=](int64_t begin, int64_t end) {
    float* dw = dw_data + begin / piece * width;
    for (int64_t row = begin; row < end; ++row) {
      const float* g = g_data + row * width;
      const float* in = x_data + row * width;
      float* dx = dx_data + row * width;
      const float r = inverse_data[row];
      const float dot = sum_of(width, [=](int64_t i) { return g[i] * w[i] * in[i]; });
      const float scale = dot * r * r / static_cast<float>(width);
      for (int64_t i = 0; i < width; ++i) {
        dx[i] = r * (g[i] * w[i] - in[i] * scale);
        dw[i] += g[i] * in[i] * r;
      }
    }
  });
  return {grad_x, grad_w.sum(0)};
}

struct RmsNorm : public torch::autograd::Function<RmsNorm> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight, double eps) {
    auto [y, inverse] = forward_cpu(x, weight, eps);
    ctx->save_for_backward({x, weight, inverse});
    return y;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    auto [grad_x, grad_w] = backward_cpu(grads[0].contiguous(), saved[0], saved[1], saved[2]);
    return {grad_x, grad_w, at::Tensor()};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  if (!on_cpu_in_float(x) || !on_cpu_in_float(weight)) return at::rms_norm(x, weight.sizes(), weight, eps);
  if (needs_graph({x, weight})) return RmsNorm::apply(x.contiguous(), weight, eps);
  return forward_cpu(x.contiguous(), weight, eps).first;
}

at::Tensor rms_norm_plain(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor x32 = x.to(at::kFloat);
  const at::Tensor normed = x32 * at::rsqrt(x32.square().mean(-1, /*keepdim=*/true) + eps);
  return (normed * weight).to(x.scalar_type());
}

}  // namespace elf::nn
