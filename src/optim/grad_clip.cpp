#include "elf/optim/grad_clip.h"

#include <ATen/ATen.h>

namespace elf {

at::Tensor clip_gradients(const ParamList& params, double max_norm) {
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const ParamRef& param : params) {
    if (param.tensor.grad().defined()) gradients.push_back(param.tensor.grad());
  }
  if (gradients.empty()) return at::zeros({}, at::kFloat);
  const at::Tensor norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, 2)));
  if (max_norm > 0) {
    const at::Tensor factor = at::clamp_max(max_norm / (norm + 1e-6), 1.0);
    at::_foreach_mul_(gradients, at::where(at::isfinite(norm), factor, at::ones_like(factor)));
  }
  return norm;
}

}  // namespace elf
