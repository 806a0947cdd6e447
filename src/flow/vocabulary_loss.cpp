#include "vocabulary_loss.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace elf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

VocabularyLoss in_one_piece(Denoiser& network, const at::Tensor& features, const at::Tensor& ids) {
  const at::Tensor logits = network.decode_head(features);
  const at::Tensor sum = at::cross_entropy_loss(logits, ids, {}, at::Reduction::Sum);
  return {sum, logits.detach().argmax(-1).eq(ids).sum()};
}

// Loss and, in `grads`, its gradients with respect to the features and to each weight of the head, added up
// over the pieces.
VocabularyLoss with_gradients(Denoiser& network, const at::Tensor& features, const at::Tensor& ids,
                              int64_t piece, const variable_list& weights, variable_list& grads) {
  const at::AutoGradMode enable(true);
  VocabularyLoss total{at::zeros({}, features.options()), at::zeros({}, ids.options())};
  std::vector<at::Tensor> feature_grads;
  variable_list weight_grads(weights.size());
  for (int64_t start = 0; start < features.size(0); start += piece) {
    const int64_t count = std::min(piece, features.size(0) - start);
    const at::Tensor some = features.narrow(0, start, count).detach().requires_grad_();
    const VocabularyLoss part = in_one_piece(network, some, ids.narrow(0, start, count));
    variable_list inputs{some};
    inputs.insert(inputs.end(), weights.begin(), weights.end());
    const variable_list found = torch::autograd::grad({part.sum}, inputs);
    feature_grads.push_back(found[0]);
    for (size_t i = 0; i < weights.size(); ++i) {
      weight_grads[i] = weight_grads[i].defined() ? weight_grads[i].add_(found[i + 1]) : found[i + 1];
    }
    total.sum.add_(part.sum.detach());
    total.correct.add_(part.correct);
  }
  grads = {at::cat(feature_grads)};
  grads.insert(grads.end(), weight_grads.begin(), weight_grads.end());
  return total;
}

// A sum whose gradients are known already: backward scales them.
struct KnownGradients : public torch::autograd::Function<KnownGradients> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& value, const variable_list& grads,
                            at::TensorList inputs) {
    (void)inputs;  // named for the graph only
    ctx->save_for_backward(grads);
    return value.clone();
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& outer) {
    const variable_list grads = ctx->get_saved_variables();
    variable_list result(2);  // nothing for value and grads themselves
    for (const at::Tensor& grad : grads) result.push_back(grad * outer[0]);
    return result;
  }
};

}  // namespace

VocabularyLoss vocabulary_loss(Denoiser& network, const at::Tensor& features, const at::Tensor& ids,
                               int64_t piece) {
  if (features.size(0) <= piece) return in_one_piece(network, features, ids);
  if (at::GradMode::is_enabled() && features.requires_grad()) {
    variable_list inputs = network.decode_weights(), grads;
    VocabularyLoss loss = with_gradients(network, features.detach(), ids, piece, inputs, grads);
    inputs.insert(inputs.begin(), features);
    loss.sum = KnownGradients::apply(loss.sum, grads, at::TensorList(inputs));
    return loss;
  }
  VocabularyLoss total{at::zeros({}, features.options()), at::zeros({}, ids.options())};
  for (int64_t start = 0; start < features.size(0); start += piece) {
    const int64_t count = std::min(piece, features.size(0) - start);
    const VocabularyLoss part =
        in_one_piece(network, features.narrow(0, start, count), ids.narrow(0, start, count));
    total.sum.add_(part.sum);
    total.correct.add_(part.correct);
  }
  return total;
}

}  // namespace elf
