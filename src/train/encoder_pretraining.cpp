#include "elf/train/encoder_pretraining.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "elf/base/error.h"
#include "elf/base/progress.h"
#include "elf/data/permutation.h"
#include "elf/optim/grad_clip.h"
#include "elf/optim/lr_schedule.h"
#include "elf/optim/optimizer.h"

namespace elf {
namespace {

constexpr int64_t kNoTarget = -100;  // ignored by the cross-entropy
constexpr int64_t kStart = 0;        // the decoder starts from the pad id, as T5 does

// Lists of ids side by side, [B, longest], the rest `filler`.
at::Tensor side_by_side(const std::vector<const std::vector<int32_t>*>& lists, int64_t filler) {
  size_t longest = 0;
  for (const auto* list : lists) longest = std::max(longest, list->size());
  at::Tensor result =
      at::full({static_cast<int64_t>(lists.size()), static_cast<int64_t>(longest)}, filler, at::kLong);
  int64_t* data = result.data_ptr<int64_t>();
  for (size_t row = 0; row < lists.size(); ++row)
    std::copy(lists[row]->begin(), lists[row]->end(), data + row * longest);
  return result;
}

OptimizerConfig optimizer_config(const EncoderPretrainingConfig& config) {
  OptimizerConfig result;
  result.kind = OptimizerKind::kAdamW;
  result.lr = config.lr;
  result.schedule = LrSchedule::kCosine;
  result.min_lr = 0.1 * config.lr;
  result.adam_b1 = 0.9;
  result.adam_b2 = 0.98;
  result.weight_decay = config.weight_decay;
  return result;
}

// The texts of a step: rows in the order of keyed permutations, one an epoch.
std::vector<CorruptedText> texts_of_step(const Dataset& dataset, const EncoderPretrainingConfig& config,
                                         int64_t step, int64_t& tokens) {
  const int64_t rows = dataset.info().rows;
  std::vector<CorruptedText> texts;
  for (int64_t slot = 0; slot < config.batch; ++slot) {
    const int64_t place = step * config.batch + slot;
    const int64_t row = Permutation(rows, config.seed, static_cast<uint64_t>(place / rows))(place % rows);
    std::vector<int32_t> ids = dataset.tokens(row);
    if (!ids.empty() && ids.back() == config.corruption.eos_id)
      ids.pop_back();  // the corrupted text gets its own
    if (ids.empty()) continue;
    tokens += static_cast<int64_t>(ids.size());
    const Stream stream{config.seed, Purpose::kSpanCorruption, static_cast<uint64_t>(step)};
    texts.push_back(corrupt_spans(ids, config.corruption, stream, slot));
  }
  if (texts.empty()) usage_error(dataset.info().path.string(), ": a whole batch of rows is empty");
  return texts;
}

std::string loss_note(double loss) {
  char text[32];
  std::snprintf(text, sizeof text, "loss %.3f", loss);
  return text;
}

double mean_of(const std::vector<double>& values, size_t begin, size_t end) {
  double sum = 0;
  for (size_t i = begin; i < end; ++i) sum += values[i];
  return sum / static_cast<double>(end - begin);
}

void check(const T5Model& model, const Dataset& dataset, const EncoderPretrainingConfig& config) {
  if (!model.has_decoder()) usage_error("encoder pretraining needs a T5 with its decoder");
  if (config.batch < 1) usage_error("encoder pretraining: batch ", config.batch, ", expected at least 1");
  if (dataset.info().rows == 0) usage_error(dataset.info().path.string(), ": holds no rows");
  if (dataset.info().vocab_size > model.config.vocab_size) {
    usage_error(dataset.info().path.string(), ": has a vocabulary of ", dataset.info().vocab_size,
                ", the encoder only ", model.config.vocab_size);
  }
}

}  // namespace

at::Tensor span_corruption_loss(const T5Encoder& encoder, const std::vector<CorruptedText>& texts,
                                at::Device device) {
  std::vector<const std::vector<int32_t>*> inputs, targets;
  for (const CorruptedText& text : texts) {
    inputs.push_back(&text.input);
    targets.push_back(&text.target);
  }
  const at::Tensor ids = side_by_side(inputs, -1);
  const at::Tensor mask = (ids >= 0).to(device);
  const at::Tensor target = side_by_side(targets, kNoTarget).to(device);
  // The decoder reads the target shifted by one.
  const at::Tensor read =
      at::constant_pad_nd(target.narrow(1, 0, target.size(1) - 1).clamp_min(0), {1, 0}, kStart);
  const at::Tensor memory = encoder.forward(ids.clamp_min(0).to(device), mask);
  const at::Tensor logits = t5_decode(encoder.model(), read, memory, mask);
  return at::cross_entropy_loss(logits.flatten(0, 1), target.flatten(), {}, /*reduction=mean*/ 1, kNoTarget);
}

EncoderPretrainingReport pretrain_encoder(T5Model& model, const Dataset& dataset,
                                          const EncoderPretrainingConfig& config, at::Device device) {
  check(model, dataset, config);
  to_device(model, device);
  const ParamList params = t5_params(model);
  for (const ParamRef& param : params) param.tensor.requires_grad_(true);
  const T5Encoder encoder(model);  // shares the weights
  const OptimizerConfig rule = optimizer_config(config);
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(rule, params);

  const int64_t warmup = std::min(config.warmup, config.steps / 5);
  const auto start = std::chrono::steady_clock::now();
  Progress progress("encoder", config.steps, "steps");
  std::vector<double> losses;
  int64_t tokens = 0;
  for (int64_t step = 0; step < config.steps; ++step) {
    const std::vector<CorruptedText> texts = texts_of_step(dataset, config, step, tokens);
    for (const ParamRef& param : params) param.tensor.mutable_grad().reset();
    const at::Tensor loss = span_corruption_loss(encoder, texts, device);
    losses.push_back(loss.item<double>());
    if (!std::isfinite(losses.back()))
      numerical_error("encoder pretraining: the loss of step ", step, " is not finite; try a smaller --lr");
    loss.backward();
    clip_gradients(params, config.grad_clip);
    optimizer->step(learning_rate(rule, config.batch, step, config.steps, warmup));
    progress.update(step + 1, loss_note(losses.back()));
  }
  progress.finish();
  for (const ParamRef& param : params) {
    param.tensor.mutable_grad().reset();
    param.tensor.requires_grad_(false);
  }

  EncoderPretrainingReport report;
  if (losses.empty()) return report;
  const size_t tenth = std::max<size_t>(1, losses.size() / 10);
  report.first_loss = mean_of(losses, 0, tenth);
  report.last_loss = mean_of(losses, losses.size() - tenth, losses.size());
  report.tokens_per_second = static_cast<double>(tokens) /
                             std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace elf
