#include "elf/train/validation.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "elf/data/loader.h"
#include "elf/flow/draws.h"
#include "elf/flow/objective.h"
#include "elf/model/model_dir.h"
#include "elf/train/training_objective.h"

namespace elf {
namespace {

constexpr int64_t kValidationStep =
    -1;  // no training step has this number, so no training draw is used twice

enum Column { kCe, kL2, kPositions, kCorrect, kColumns };

// Adds a batch, each row in both branches, to the sums at `row`.
void add_batch(ElfNet& network, LatentCodec& codec, const Batch& host_batch, const RunConfig& config,
               double* row) {
  const Batch batch = to(host_batch, network.parameters().front().tensor.device());
  const at::Tensor no_drop = at::zeros({batch.ids.size(0)}, batch.cond_mask.options());
  const ObjectiveInput input{encode_batch(codec, batch, no_drop), batch.ids, batch.valid_mask,
                             batch.cond_mask};
  for (const bool decode : {false, true}) {
    FlowConfig flow = config.flow;  // a row is given the noise of its own branch only: draw for each
    flow.branch = Branch::kPerExample;
    flow.decoder_prob = decode ? 1 : 0;
    flow.label_drop_prob = 0;
    const StepDraws draws = to(draw_step(flow, {batch.length(), config.model.latent_dim}, config.train.seed,
                                         kValidationStep, host_batch.samples),
                               batch.ids.device());
    const Loss loss = objective(network, Model::network_traits(config), input, draws, flow);
    if (decode) {
      row[kCe] = loss.ce_sum.item<double>();
      row[kCorrect] = loss.correct.item<double>();
      row[kPositions] = loss.ce_positions.item<double>();
    } else {
      row[kL2] = loss.l2_sum.item<double>();
    }
  }
}

}  // namespace

ValidationReport run_validation(ElfNet& network, LatentCodec& codec, const Dataset& data, int64_t pad_id,
                                const RunConfig& config, Ranks& ranks) {
  const at::NoGradGuard no_gradients;
  codec.bind(network.unembedding());
  const int64_t batch_rows =
      config.train.micro_batch_size > 0 ? config.train.micro_batch_size : config.train.global_batch_size;
  int64_t rows = data.info().rows;
  if (config.train.valid_batches > 0) rows = std::min(rows, config.train.valid_batches * batch_rows);
  const int64_t batches = (rows + batch_rows - 1) / batch_rows;

  std::vector<double> table(static_cast<size_t>(batches * kColumns), 0);  // a batch of another rank stays 0
  for (int64_t i = ranks.rank(); i < batches; i += ranks.size()) {
    const int64_t first = i * batch_rows;
    const Batch batch =
        sequential_batch(data, first, std::min(batch_rows, rows - first), config.data.max_length, pad_id);
    add_batch(network, codec, batch, config, table.data() + i * kColumns);
  }
  table = ranks.sum(table);
  double sums[kColumns] = {};
  for (size_t i = 0; i < table.size(); ++i) sums[i % kColumns] += table[i];

  ValidationReport report{.rows = rows};
  if (sums[kPositions] > 0) {
    report.l2_loss = sums[kL2] / sums[kPositions];
    report.ce_loss = sums[kCe] / sums[kPositions];
    report.accuracy = sums[kCorrect] / sums[kPositions];
    report.loss = (1 - config.flow.decoder_prob) * report.l2_loss + config.flow.decoder_prob * report.ce_loss;
  }
  return report;
}

}  // namespace elf
