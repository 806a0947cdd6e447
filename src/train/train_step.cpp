#include "elf/train/train_step.h"

#include <cmath>

#include "elf/data/masks.h"
#include "elf/flow/objective.h"
#include "elf/model/model_dir.h"
#include "elf/optim/grad_clip.h"

namespace elf {
namespace {

// Sums over micro-batches; stays on the device until the step is done.
struct Sums {
  at::Tensor values;  // ce_sum, l2_sum, ce_positions, l2_positions, correct

  void add(const Loss& loss) {
    const at::Tensor some = at::stack({loss.ce_sum, loss.l2_sum, loss.ce_positions.to(at::kFloat),
                                       loss.l2_positions.to(at::kFloat), loss.correct.to(at::kFloat)});
    values = values.defined() ? values + some : some;
  }
};

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

}  // namespace

Batch to(const Batch& batch, at::Device device) {
  Batch moved = batch;
  moved.ids = batch.ids.to(device);
  moved.valid_mask = batch.valid_mask.to(device);
  moved.cond_mask = batch.cond_mask.to(device);
  return moved;
}

at::Tensor encode_batch(LatentCodec& codec, const Batch& batch, const at::Tensor& label_drop) {
  return codec.encode(batch.ids, encoder_mask(batch.valid_mask, batch.cond_mask, label_drop));
}

StepReport train_step(Learner& learner, const RunConfig& config, const std::vector<Batch>& batches,
                      const DrawFunction& draws, double lr) {
  const ParamList& parameters = learner.network.parameters();
  for (const ParamRef& parameter : parameters) parameter.tensor.mutable_grad().reset();

  double positions = 0, all_positions = 0;
  for (const Batch& batch : batches) {
    positions += loss_mask({{}, batch.ids, batch.valid_mask, batch.cond_mask}, config.flow.pad_token)
                     .sum()
                     .item<double>();
    all_positions += static_cast<double>(batch.ids.numel());
  }
  const at::Device device = parameters.front().tensor.device();
  Sums sums;
  for (const Batch& host_batch : batches) {
    const Batch batch = to(host_batch, device);
    const StepDraws step_draws = to(draws(host_batch), device);
    const ObjectiveInput input{encode_batch(learner.codec, batch, step_draws.label_drop), batch.ids,
                               batch.valid_mask, batch.cond_mask};
    const Loss loss =
        objective(learner.network, Model::network_traits(config), input, step_draws, config.flow, positions);
    loss.total.backward();
    sums.add(loss);
  }
  const at::Tensor norm = clip_gradients(parameters, config.optimizer.grad_clip);

  const at::Tensor read = at::cat({sums.values, norm.reshape({1}).to(sums.values.scalar_type())})
                              .to(at::kCPU, at::kDouble);  // the step's one synchronisation
  const double* value = read.data_ptr<double>();
  StepReport report{.loss = share(value[0] + value[1], positions),
                    .l2_loss = share(value[1], value[3]),
                    .ce_loss = share(value[0], value[2]),
                    .accuracy = share(value[4], value[2]),
                    .grad_norm = value[5],
                    .pad_fraction = 1 - share(positions, all_positions)};
  report.finite = std::isfinite(report.loss) && std::isfinite(report.grad_norm);
  if (report.finite) {
    learner.optimizer.step(lr);
    learner.ema.update();
  }
  return report;
}

}  // namespace elf
