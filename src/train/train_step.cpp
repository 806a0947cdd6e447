#include "elf/train/train_step.h"

#include <ATen/ATen.h>

#include <cmath>

#include "elf/base/phases.h"
#include "elf/optim/grad_clip.h"
#include "faults.h"

namespace elf {
namespace {

// One row a micro-batch; stays on the device until the step is done.
enum Column { kCeSum, kL2Sum, kCePositions, kL2Positions, kCorrect, kColumns };

at::Tensor row_of(const Loss& loss) {
  return at::stack({loss.ce_sum, loss.l2_sum, loss.ce_positions.to(at::kFloat),
                    loss.l2_positions.to(at::kFloat), loss.correct.to(at::kFloat)});
}

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

// Dataset rows of the micro-batches whose sums are not finite, of all ranks; the first few of each.
std::vector<int64_t> rows_not_finite(Ranks& ranks, const std::vector<Batch>& batches,
                                     const at::Tensor& sums) {
  constexpr int64_t kShown = 8;
  std::vector<double> places(static_cast<size_t>(kShown * ranks.size()), 0);  // row + 1; 0 = nothing
  int64_t count = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    if (at::isfinite(sums[static_cast<int64_t>(i)]).all().item<bool>()) continue;
    for (const int64_t row : batches[i].rows) {
      if (count < kShown)
        places[static_cast<size_t>(kShown * ranks.rank() + count++)] = static_cast<double>(row + 1);
    }
  }
  std::vector<int64_t> rows;
  for (const double place : ranks.sum(places)) {
    if (place > 0) rows.push_back(static_cast<int64_t>(place) - 1);
  }
  return rows;
}

}  // namespace

StepReport train_step(Learner& learner, const StepInput& input) {
  const ParamList& parameters = learner.network.parameters();
  for (const ParamRef& parameter : parameters) parameter.tensor.mutable_grad().reset();

  enum { kWeight, kValid, kSize };
  std::vector<double> part(3, 0);
  for (const Batch& batch : input.batches) {
    part[kWeight] += learner.objective.weight(batch);
    part[kValid] += batch.valid_mask.sum().item<double>();
    part[kSize] += static_cast<double>(batch.ids.numel());
  }
  const std::vector<double> whole = learner.ranks.sum(part);
  std::vector<at::Tensor> sums;
  for (const Batch& batch : input.batches) {
    Loss loss = learner.objective.loss(batch, input.step, whole[kWeight]);
    if (fault_at("nan_loss", input.step + 1)) loss = spoilt(loss);
    sums.push_back(row_of(loss));
    in_phase("backward", [&] { learner.sync.backward(loss.total, sums.size() == input.batches.size()); });
  }
  const at::Tensor norm =
      in_phase("optimiser", [&] { return clip_gradients(parameters, learner.grad_clip); });

  const at::Tensor rows = at::stack(sums);
  const at::Tensor read =
      at::cat({rows.flatten(), norm.reshape({1}).to(rows.scalar_type())}).to(at::kCPU, at::kDouble);
  const at::Tensor table =
      read.narrow(0, 0, rows.numel()).reshape({-1, kColumns});  // the one synchronisation
  const at::Tensor own = table.sum(0);
  const double grad_norm = read[-1].item<double>();
  std::vector<double> own_sums(own.data_ptr<double>(), own.data_ptr<double>() + kColumns);
  own_sums.push_back(std::isfinite(grad_norm) ? 0 : 1);
  own_sums.push_back(input.stop_requested && input.stop_requested() ? 1 : 0);
  const std::vector<double> total = learner.ranks.sum(own_sums);
  StepReport report{.loss = share(total[kCeSum] + total[kL2Sum], whole[kWeight]),
                    .l2_loss = share(total[kL2Sum], total[kL2Positions]),
                    .ce_loss = share(total[kCeSum], total[kCePositions]),
                    .accuracy = share(total[kCorrect], total[kCePositions]),
                    .grad_norm = grad_norm,
                    .pad_fraction = 1 - share(whole[kValid], whole[kSize]),
                    .stop = total[kColumns + 1] > 0};
  report.finite = std::isfinite(report.loss) && total[kColumns] == 0;
  if (report.finite) {
    in_phase("optimiser", [&] {
      learner.optimizer.step(input.lr);
      learner.objective.after_update();
    });
    in_phase("ema", [&] { learner.ema.update(); });
  } else {
    report.bad_rows = rows_not_finite(learner.ranks, input.batches, table);
  }
  return report;
}

}  // namespace elf
