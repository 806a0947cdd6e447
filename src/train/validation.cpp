#include "elf/train/validation.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "elf/data/loader.h"
#include "elf/flow/draws.h"
#include "elf/flow/objective.h"
#include "elf/model/model_dir.h"
#include "elf/train/train_step.h"

namespace elf {
namespace {

constexpr int64_t kValidationStep =
    -1;  // no training step has this number, so no training draw is used twice

}  // namespace

ValidationReport run_validation(ElfNet& network, LatentCodec& codec, const Dataset& data, int64_t pad_id,
                                const RunConfig& config) {
  const at::NoGradGuard no_gradients;
  const at::Device device = network.parameters().front().tensor.device();
  const int64_t batch_rows =
      config.train.micro_batch_size > 0 ? config.train.micro_batch_size : config.train.global_batch_size;
  int64_t rows = data.info().rows;
  if (config.train.valid_batches > 0) rows = std::min(rows, config.train.valid_batches * batch_rows);

  double ce = 0, l2 = 0, positions = 0, correct = 0;
  for (int64_t first = 0; first < rows; first += batch_rows) {
    const Batch host_batch =
        sequential_batch(data, first, std::min(batch_rows, rows - first), config.data.max_length, pad_id);
    const Batch batch = to(host_batch, device);
    StepDraws draws = to(draw_step(config.flow, {batch.length(), config.model.latent_dim}, config.train.seed,
                                   kValidationStep, host_batch.samples),
                         device);
    draws.label_drop = at::zeros_like(draws.decoder_row);
    const ObjectiveInput input{encode_batch(codec, batch, draws.label_drop), batch.ids, batch.valid_mask,
                               batch.cond_mask};
    for (const bool decode : {false, true}) {
      draws.decoder_row = at::full_like(draws.decoder_row, decode);
      const Loss loss = objective(network, Model::network_traits(config), input, draws, config.flow);
      if (decode) {
        ce += loss.ce_sum.item<double>();
        correct += loss.correct.item<double>();
        positions += loss.ce_positions.item<double>();
      } else {
        l2 += loss.l2_sum.item<double>();
      }
    }
  }
  ValidationReport report{.rows = rows};
  if (positions > 0) {
    report.l2_loss = l2 / positions;
    report.ce_loss = ce / positions;
    report.accuracy = correct / positions;
    report.loss = (1 - config.flow.decoder_prob) * report.l2_loss + config.flow.decoder_prob * report.ce_loss;
  }
  return report;
}

}  // namespace elf
