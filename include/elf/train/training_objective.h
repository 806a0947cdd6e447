// What a training step minimises, as the trainer sees it: a weight and a loss for each micro-batch. The
// trainer knows no mathematics of it; the flow objective is one, distillation another.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "elf/config/run_config.h"
#include "elf/data/batch.h"
#include "elf/flow/draws.h"
#include "elf/flow/objective.h"
#include "elf/model/elf_net.h"
#include "elf/model/latent_codec.h"

namespace elf {

class TrainingObjective {
 public:
  virtual ~TrainingObjective() = default;

  // What a micro-batch counts in the average over the step: its loss positions, say, or its rows. Batches are
  // on the CPU.
  virtual double weight(const Batch& batch) const = 0;

  // The loss of a micro-batch of optimiser step `step`. `whole` is the weight of the whole step, over
  // micro-batches and ranks; it divides the terms, so that the totals of all micro-batches add up to the
  // loss of the step. Whatever is random is keyed by (seed, step, batch.samples).
  virtual Loss loss(const Batch& batch, int64_t step, double whole) = 0;

  // Called after each update of the weights, before they are averaged.
  virtual void after_update() {}
};

// The random numbers of a micro-batch of a step.
using DrawFunction = std::function<StepDraws(const Batch&, int64_t step)>;

// docs/ALGORITHM.md section 3; its weight is the number of loss positions. Network and codec must outlive it.
class FlowObjective final : public TrainingObjective {
 public:
  // `draws`: numbers to use in place of those keyed by (config.train.seed, step, sample).
  FlowObjective(ElfNet& network, LatentCodec& codec, const RunConfig& config, DrawFunction draws = nullptr);

  double weight(const Batch& batch) const override;
  Loss loss(const Batch& batch, int64_t step, double whole) override;
  void after_update() override;  // latents.source learned: normalises the table's rows again

 private:
  ElfNet& network_;
  LatentCodec& codec_;
  RunConfig config_;
  DrawFunction draws_;
};

// What the configuration asks for.
std::unique_ptr<TrainingObjective> make_training_objective(const RunConfig& config, ElfNet& network,
                                                           LatentCodec& codec);

// Normalised latents [B, L, D] of a batch, conditions hidden from the targets of dropped rows; on the codec's
// device.
at::Tensor encode_batch(LatentCodec& codec, const Batch& batch, const at::Tensor& label_drop);

// The batch's tensors on `device`.
Batch to(const Batch& batch, at::Device device);

}  // namespace elf
