#include "vocabulary_loss.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace elf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Logits of one piece hold at most this many numbers (128 MiB).
constexpr int64_t kLogitsOfPiece = int64_t{1} << 25;

struct Positions {
  at::Tensor ids, weights;

  Positions some(int64_t start, int64_t count) const {
    return {ids.narrow(0, start, count), weights.defined() ? weights.narrow(0, start, count) : weights};
  }
};

VocabularyLoss in_one_piece(Denoiser& network, const at::Tensor& features, const Positions& places) {
  const at::Tensor logits = network.decode_head(features);
  const at::Tensor correct = logits.detach().argmax(-1).eq(places.ids);
  if (!places.weights.defined())
    return {at::cross_entropy_loss(logits, places.ids, {}, at::Reduction::Sum), correct.sum()};
  const at::Tensor each = at::cross_entropy_loss(logits, places.ids, {}, at::Reduction::None);
  return {(each * places.weights).sum(), (correct * places.weights).sum()};
}

VocabularyLoss nothing(const at::Tensor& features, const Positions& places) {
  return {at::zeros({}, features.options()),
          at::zeros({}, places.weights.defined() ? places.weights.options() : places.ids.options())};
}

// Loss and, in `grads`, its gradients with respect to the features and to each weight of the head, added up
// over the pieces.
VocabularyLoss with_gradients(Denoiser& network, const at::Tensor& features, const Positions& places,
                              int64_t piece, const variable_list& weights, variable_list& grads) {
  const at::AutoGradMode enable(true);
  VocabularyLoss total = nothing(features, places);
  std::vector<at::Tensor> feature_grads;
  variable_list weight_grads(weights.size());
  for (int64_t start = 0; start < features.size(0); start += piece) {
    const int64_t count = std::min(piece, features.size(0) - start);
    const at::Tensor some = features.narrow(0, start, count).detach().requires_grad_();
    const VocabularyLoss part = in_one_piece(network, some, places.some(start, count));
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

int64_t vocabulary_piece(int64_t vocab_size, int64_t count) {
  return vocab_size > 0 ? std::max<int64_t>(1, kLogitsOfPiece / vocab_size) : count;
}

VocabularyLoss vocabulary_loss(Denoiser& network, const at::Tensor& features, const at::Tensor& ids,
                               int64_t piece, const at::Tensor& weights) {
  const Positions places{ids, weights};
  if (features.size(0) <= piece) return in_one_piece(network, features, places);
  if (at::GradMode::is_enabled() && features.requires_grad()) {
    variable_list inputs = network.decode_weights(), grads;
    VocabularyLoss loss = with_gradients(network, features.detach(), places, piece, inputs, grads);
    inputs.insert(inputs.begin(), features);
    loss.sum = KnownGradients::apply(loss.sum, grads, at::TensorList(inputs));
    return loss;
  }
  VocabularyLoss total = nothing(features, places);
  for (int64_t start = 0; start < features.size(0); start += piece) {
    const int64_t count = std::min(piece, features.size(0) - start);
    const VocabularyLoss part =
        in_one_piece(network, features.narrow(0, start, count), places.some(start, count));
    total.sum.add_(part.sum);
    total.correct.add_(part.correct);
  }
  return total;
}

}  // namespace elf
