// A contextual encoder trained from scratch on the user's text: a T5 learns to fill in hidden stretches (span
// corruption).
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "elf/data/dataset.h"
#include "elf/data/span_corruption.h"
#include "elf/model/t5.h"

namespace elf {

struct EncoderPretrainingConfig {
  int64_t steps = 1000;  // 0 = the random start itself
  int64_t batch = 64;    // texts a step
  double lr = 1e-3;      // peak; AdamW
  int64_t warmup = 100;  // steps, at most a fifth of all; then a half cosine down to a tenth of the peak
  double weight_decay = 0.01;
  double grad_clip = 1.0;
  uint64_t seed = 0;
  SpanCorruption corruption;
};

struct EncoderPretrainingReport {
  double first_loss = 0,
         last_loss = 0;  // cross-entropy a target token, means of the first and last tenth of the steps
  double tokens_per_second = 0;  // tokens of the texts
};

// Trains `model` (which has a decoder) in place and leaves it on `device` without gradients. Row order and
// spans are pure functions of the seed. Mean cross-entropy over all target tokens of a batch, EOS included.
// Shows progress with the loss. Throws Error (usage): vocabulary larger than the model's; (numerical): a loss
// that is not finite.
EncoderPretrainingReport pretrain_encoder(T5Model& model, const Dataset& dataset,
                                          const EncoderPretrainingConfig& config, at::Device device);

// Mean cross-entropy of one batch of corrupted texts; a scalar with gradients.
at::Tensor span_corruption_loss(const T5Encoder& encoder, const std::vector<CorruptedText>& texts,
                                at::Device device);

}  // namespace elf
