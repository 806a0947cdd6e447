#include "elf/train/memory_estimate.h"

#include <algorithm>
#include <cmath>

namespace elf {
namespace {

// Measured on the CPU with networks of width 256 and 512, 6 to 12 blocks, 64 rows of 64 tokens, with and
// without recompute, and with dropout; what is not plain counting was fitted there.
constexpr double kMiB = 1024.0 * 1024;
constexpr double kFloat = 4;  // bytes
constexpr double kProgram = 120 * kMiB;
constexpr double kLatentsOfToken = 14;  // tensors [B, L, D] alive at a time: noise, states, targets
constexpr double kLogitsOfPiece = int64_t{1} << 25;  // as the objective limits them
constexpr double kGroupOfMuon = int64_t{1} << 24;    // as Muon limits the matrices worked on at once

// Floats that a fused block keeps a token: the inputs of its halves (2 H), qkv (3 H), mixed heads (H), the
// two halves of the gate (2 I). In bfloat16, where blocks are not fused, the bytes come to about the same.
double floats_of_block(double hidden, double inner) {
  return 6 * hidden + 2 * inner;
}

// One with dropout or adaLN-Zero, which is not fused: also the normed inputs (2 H), the heads (3 H), the
// gate's product (I); of adaLN-Zero what it scales (4 H).
double floats_of_plain_block(double hidden, double inner, bool modulated) {
  return (modulated ? 16 : 12) * hidden + 3 * inner;
}

}  // namespace

double MemoryEstimate::gib() const {
  const double of_a_step = std::max(activations, updates);
  const double most = saves_while_training ? of_a_step + saving : std::max(of_a_step, saving);
  return (program + states + most) / (1024 * kMiB);
}

MemoryEstimate estimate_memory(const RunConfig& config, int64_t parameters, int64_t ranks) {
  const ModelConfig& model = config.model;
  const TrainConfig& train = config.train;
  const int64_t share = (train.global_batch_size + ranks - 1) / ranks;
  const int64_t rows = train.micro_batch_size > 0 ? std::min(train.micro_batch_size, share) : share;
  const double weights = static_cast<double>(parameters) * kFloat;
  const auto hidden = static_cast<double>(model.hidden_size), depth = static_cast<double>(model.depth);
  const auto latent = static_cast<double>(model.latent_dim), vocab = static_cast<double>(model.vocab_size);
  const double inner = std::floor(std::floor(hidden * model.mlp_ratio) * 2 / 3);
  const auto data_tokens = static_cast<double>(rows * model.max_length);
  const auto prefix = static_cast<double>(rows * model.num_prefix_tokens());
  const bool modulated = model.conditioning == Conditioning::kAdaLnZero;
  const double of_block = floats_of_block(hidden, inner);
  const double of_plain = floats_of_plain_block(hidden, inner, modulated);
  const double dropping = model.dropout > 0 ? std::floor(depth / 4) * 2 : 0;
  const double plain = modulated ? depth : dropping;
  const double largest = plain > 0 ? of_plain : of_block;
  const double blocks = train.recompute
                            ? depth * hidden + largest
                            : (depth - plain) * of_block + plain * of_plain + (plain > 0 ? of_plain : 0);
  const double logits = std::min(kLogitsOfPiece, config.flow.decoder_prob * data_tokens * vocab);
  const bool muon = config.optimizer.kind == OptimizerKind::kMuon;
  const double momenta = muon ? 1.05 : 2;

  MemoryEstimate estimate;
  estimate.program = kProgram;
  estimate.states = weights * (4 + momenta);  // weights, gradients, averages, the network that runs on them
  if (rows < share) estimate.states += 2 * weights;  // float64 sums over micro-batches
  estimate.activations = kFloat * ((data_tokens + prefix) * blocks +
                                   data_tokens * (kLatentsOfToken * latent + 4 * hidden) + 3 * logits);
  estimate.updates =
      muon ? 6 * kFloat * std::min(kGroupOfMuon, 0.3 * static_cast<double>(parameters)) : weights;
  estimate.saving = train.save_in_background ? weights * (2 + momenta) : 0;
  estimate.saves_while_training = train.save_every > 0;
  return estimate;
}

}  // namespace elf
