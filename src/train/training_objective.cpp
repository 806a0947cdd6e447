#include "elf/train/training_objective.h"

#include <ATen/ATen.h>

#include "elf/base/phases.h"
#include "elf/data/masks.h"
#include "elf/model/model_dir.h"
#include "elf/tensor/device.h"
#include "elf/train/distillation_objective.h"

namespace elf {

Batch to(const Batch& batch, at::Device device) {
  Batch moved = batch;
  moved.ids = upload(batch.ids, device);
  moved.valid_mask = upload(batch.valid_mask, device);
  moved.cond_mask = upload(batch.cond_mask, device);
  return moved;
}

at::Tensor encode_batch(LatentCodec& codec, const Batch& batch, const at::Tensor& label_drop) {
  return codec.encode(batch.ids, encoder_mask(batch.valid_mask, batch.cond_mask, label_drop));
}

FlowObjective::FlowObjective(ElfNet& network, LatentCodec& codec, const RunConfig& config, DrawFunction draws)
    : network_(network), codec_(codec), config_(config), draws_(std::move(draws)) {
  if (draws_) return;
  draws_ = [this](const Batch& batch, int64_t step) {
    return draw_step(config_.flow, {batch.length(), config_.model.latent_dim}, config_.train.seed, step,
                     batch.samples);
  };
}

double FlowObjective::weight(const Batch& batch) const {
  return loss_mask({{}, batch.ids, batch.valid_mask, batch.cond_mask}, config_.flow.pad_token)
      .sum()
      .item<double>();
}

void FlowObjective::after_update() {
  if (config_.latents.source == LatentSource::kLearned) renormalise_unembedding(network_.unembedding());
}

Loss FlowObjective::loss(const Batch& host_batch, int64_t step, double whole) {
  const at::Device device = network_.parameters().front().tensor.device();
  if (config_.model.dropout > 0)
    network_.set_dropout(nn::DropoutKey{config_.train.seed, step, host_batch.samples});
  codec_.bind(network_.unembedding());  // validation may have bound the averages
  // Drawn before anything is copied, which waits for the device: it may still be busy with the step before.
  const StepDraws host_draws = in_phase("data", [&] { return draws_(host_batch, step); });
  const Batch batch = to(host_batch, device);
  const StepDraws draws = to(host_draws, device);
  const at::Tensor latents =
      in_phase("encoder", [&] { return encode_batch(codec_, batch, draws.label_drop); });
  const ObjectiveInput input{latents, batch.ids, batch.valid_mask, batch.cond_mask};
  return in_phase("forward", [&] {
    return objective(network_, Model::network_traits(config_), input, draws, config_.flow, whole);
  });
}

std::unique_ptr<TrainingObjective> make_training_objective(const RunConfig& config, ElfNet& network,
                                                           LatentCodec& codec) {
  if (config.train.objective == TrainObjective::kDistillation)
    return std::make_unique<DistillationObjective>(network, codec, config);
  return std::make_unique<FlowObjective>(network, codec, config);
}

}  // namespace elf
