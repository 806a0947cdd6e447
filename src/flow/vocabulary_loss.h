// Cross-entropy over the vocabulary without ever holding the logits of many positions.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "elf/flow/denoiser.h"

namespace elf {

struct VocabularyLoss {
  at::Tensor sum;      // scalar with gradient: summed cross-entropy, weighted where weights are given
  at::Tensor correct;  // scalar: positions whose best logit is the token, weighted in the same way
};

// How many positions of a vocabulary of that size go through the head at a time: 128 MiB of logits.
// vocab_size 0: all `count`.
int64_t vocabulary_piece(int64_t vocab_size, int64_t count);

// features [n, H], ids [n] int64, weights [n] or undefined. In pieces of at most `piece` positions; more than
// one piece: the gradients of each are computed with its logits, at once, so that the logits of one piece
// live at a time. Differentiable once.
VocabularyLoss vocabulary_loss(Denoiser& network, const at::Tensor& features, const at::Tensor& ids,
                               int64_t piece, const at::Tensor& weights = {});

}  // namespace elf
