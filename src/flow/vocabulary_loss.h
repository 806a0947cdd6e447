// Cross-entropy over the vocabulary without ever holding the logits of many positions.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "elf/flow/denoiser.h"

namespace elf {

struct VocabularyLoss {
  at::Tensor sum;      // scalar with gradient: summed cross-entropy
  at::Tensor correct;  // scalar: positions whose best logit is the token
};

// features [n, H], ids [n] int64. In pieces of at most `piece` positions; more than one piece: the gradients
// of each are computed with its logits, at once, so that the logits of one piece live at a time.
// Differentiable once.
VocabularyLoss vocabulary_loss(Denoiser& network, const at::Tensor& features, const at::Tensor& ids,
                               int64_t piece);

}  // namespace elf
