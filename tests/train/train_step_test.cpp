// Whole training steps against the published implementation: loss, clipping, Muon, schedule, averages
// (golden/loss/train_steps_*).
#include "elf/train/train_step.h"

#include <gtest/gtest.h>

#include "elf/base/error.h"
#include "elf/flow/objective.h"
#include "elf/model/model_dir.h"
#include "elf/optim/grad_clip.h"
#include "elf/optim/lr_schedule.h"
#include "support/golden.h"

namespace elf {
namespace {

using test::all_close;
using test::golden;

// Gives the encoder outputs of the golden file, normalised, whatever the ids.
class StoredCodec : public LatentCodec {
 public:
  at::Tensor encode(const at::Tensor&, const at::Tensor&) override { return latents; }
  int64_t dim() const override { return latents.size(2); }
  int64_t vocabulary() const override { return 1 << 20; }
  std::string digest() const override { return "stored"; }
  at::Tensor latents;
};

RunConfig config_of(const nlohmann::json& about) {
  const nlohmann::json &net = about["network"], &run = about["config"];
  RunConfig config;
  config.model = {.depth = net["depth"],
                  .hidden_size = net["hidden_size"],
                  .num_heads = net["num_heads"],
                  .latent_dim = net["text_encoder_dim"],
                  .bottleneck_dim = net["bottleneck_dim"],
                  .vocab_size = net["vocab_size"],
                  .max_length = net["max_length"],
                  .num_time_tokens = net["num_time_tokens"],
                  .num_self_cond_cfg_tokens = net["num_self_cond_cfg_tokens"],
                  .num_model_mode_tokens = net["num_model_mode_tokens"]};
  config.flow.decoder_prob = run["decoder_prob"];
  config.flow.decoder_noise_scale = run["decoder_noise_scale"];
  config.flow.label_drop_prob = run["label_drop_prob"];
  config.flow.pad_token = PadToken::kEos;
  config.optimizer.lr = about["lr"];
  config.optimizer.warmup_steps = about["warmup_optimizer_steps"];
  config.optimizer.ema_decay = run["ema_decay1"];
  return config;
}

class TrainSteps : public ::testing::Test {
 protected:
  explicit TrainSteps(const std::string& name = "train_steps_muon")
      : about_(test::golden_json("loss/train_steps.json")[name]),
        tensors_(read_safetensors(golden("loss/" + name + ".safetensors"))) {
    config_ = config_of(about_);
    network_ = std::make_unique<ElfNet>(config_.model, at::kCPU);
    TensorMap init;
    for (const auto& [key, tensor] : tensors_) {
      if (key.starts_with("init/")) init[key.substr(5)] = tensor;
    }
    network_->load(init);
    for (const ParamRef& parameter : network_->parameters()) parameter.tensor.requires_grad_(true);
    optimizer_ = make_optimizer(config_.optimizer, network_->parameters());
    ema_ = std::make_unique<Ema>(network_->parameters(), config_.optimizer.ema_decay, false);
  }

  const at::Tensor& at(int batch, const std::string& name) const {
    return tensors_.at(cat("batch", batch, "/", name));
  }

  Batch batch(int k) {
    codec_.latents = (at(k, "in/encoder_output") - config_.latents.mean) / config_.latents.std;
    return {at(k, "in/input_ids"), at(k, "in/attention_mask") > 0, at(k, "in/cond_mask") > 0, {}, {}};
  }
  StepDraws draws(int k) {
    return {.time = at(k, "draw/t_normal"),
            .eps = at(k, "draw/eps"),
            .decoder_row = at(k, "draw/decoder_row") > 0,
            .p_normal = at(k, "draw/p_normal"),
            .decoder_eps = at(k, "draw/decoder_eps"),
            .self_cond = at(k, "draw/self_cond_uniform"),
            .w = at(k, "draw/w_uniform"),
            .label_drop = at(k, "in/label_drop") > 0};
  }
  double lr(int64_t step) {
    return learning_rate(config_.optimizer, 256, step, 100, config_.optimizer.warmup_steps);
  }

  // A step on these batches with these random numbers in place of keyed ones.
  StepReport step(const std::vector<Batch>& batches, const DrawFunction& draw, double lr) {
    FlowObjective objective(*network_, codec_, config_, draw);
    Learner learner{*network_, *optimizer_, *ema_, objective, config_.optimizer.grad_clip, alone_, sync_};
    return train_step(learner, {batches, 0, lr});
  }

  void expect_final() {
    const TensorMap weights = network_->state();
    for (const auto& [name, average] : ema_->averages()) {
      EXPECT_TRUE(all_close(weights.at(name), tensors_.at("final/param/" + name), 1e-4, 1e-5)) << name;
      EXPECT_TRUE(all_close(average, tensors_.at("final/ema/" + name), 1e-4, 1e-5)) << "average of " << name;
    }
  }

  nlohmann::json about_;
  TensorMap tensors_;
  RunConfig config_;
  std::unique_ptr<ElfNet> network_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Ema> ema_;
  StoredCodec codec_;
  Ranks alone_;
  GradientSync sync_{alone_, {}};
};

class AccumulatedTrainSteps : public TrainSteps {
 protected:
  AccumulatedTrainSteps() : TrainSteps("train_steps_accumulated") {}
};

TEST_F(TrainSteps, EqualThePublishedOnes) {
  int64_t done = 0;
  for (const nlohmann::json& expected : about_["steps"]) {
    const int k = expected["batch"];
    EXPECT_NEAR(lr(done), expected["lr_used"].get<double>(), 1e-9);
    const StepReport report = step(
        {batch(k)}, [&](const Batch&, int64_t) { return draws(k); }, lr(done++));
    EXPECT_NEAR(report.loss, expected["loss"].get<double>(), 1e-4) << "batch " << k;
    EXPECT_NEAR(report.ce_loss, expected["ce_loss"].get<double>(), 1e-4) << "batch " << k;
    EXPECT_NEAR(report.l2_loss, expected["l2_loss"].get<double>(), 1e-4) << "batch " << k;
    EXPECT_NEAR(report.grad_norm, expected["grad_norm"].get<double>(), 1e-3) << "batch " << k;
    EXPECT_TRUE(report.finite);
  }
  expect_final();
}

// The published code averages the losses of the micro-batches, each over its own loss positions; train_step
// divides by those of the whole step. The parts are put together here in the published way.
TEST_F(AccumulatedTrainSteps, PartsEqualThePublishedOnes) {
  int64_t step = 0;
  for (const nlohmann::json& expected : about_["steps"]) {
    const int k = expected["batch"];
    const Batch rows = batch(k);
    const ObjectiveInput input{codec_.latents, rows.ids, rows.valid_mask, rows.cond_mask};
    const double own = loss_mask(input, PadToken::kEos).sum().item<double>();
    const Loss loss =
        objective(*network_, Model::network_traits(config_), input, draws(k), config_.flow, 2 * own);
    EXPECT_NEAR(2 * loss.total.item<double>(), expected["loss"].get<double>(), 1e-4) << "batch " << k;
    loss.total.backward();
    if (!expected["optimizer_step"]) continue;
    EXPECT_NEAR(clip_gradients(network_->parameters(), 1.0).item<double>(),
                expected["grad_norm"].get<double>(), 1e-3)
        << "batch " << k;
    optimizer_->step(lr(step++));
    ema_->update();
    for (const ParamRef& parameter : network_->parameters()) parameter.tensor.mutable_grad().reset();
  }
  expect_final();
}

TEST_F(TrainSteps, MicroBatchesGiveTheStepOfTheWholeBatch) {
  const Batch whole = batch(1);
  const StepDraws all = draws(1);
  const at::Tensor latents = codec_.latents;
  const auto rows = [](const at::Tensor& tensor, int64_t first, int64_t count) {
    return tensor.narrow(0, first, count);
  };
  step(
      {whole}, [&](const Batch&, int64_t) { return all; }, 0.0);
  std::vector<at::Tensor> expected;
  for (const ParamRef& parameter : network_->parameters())
    expected.push_back(parameter.tensor.grad().clone());

  std::vector<Batch> parts;
  for (int64_t first : {0, 1}) {
    const int64_t count = first == 0 ? 1 : 3;
    parts.push_back({rows(whole.ids, first, count),
                     rows(whole.valid_mask, first, count),
                     rows(whole.cond_mask, first, count),
                     {first},
                     {}});
  }
  const DrawFunction part_draws = [&](const Batch& part, int64_t) {
    const int64_t first = part.samples.front(), count = part.size();
    codec_.latents = rows(latents, first, count);
    return StepDraws{rows(all.time, first, count),        rows(all.eps, first, count),
                     rows(all.decoder_row, first, count), rows(all.p_normal, first, count),
                     rows(all.decoder_eps, first, count), rows(all.self_cond, first, count),
                     rows(all.w, first, count),           rows(all.label_drop, first, count)};
  };
  step(parts, part_draws, 0.0);
  for (size_t i = 0; i < expected.size(); ++i) {
    const ParamRef& parameter = network_->parameters()[i];
    EXPECT_TRUE(test::close_to_largest(parameter.tensor.grad(), expected[i], 1e-5)) << parameter.name;
  }
}

TEST_F(TrainSteps, NonFiniteLossChangesNothing) {
  const TensorMap before = network_->state();
  std::map<std::string, at::Tensor> copies;
  for (const auto& [name, tensor] : before) copies[name] = tensor.clone();
  const Batch rows = batch(1);
  codec_.latents = at::full_like(codec_.latents, std::numeric_limits<float>::quiet_NaN());
  const StepReport report = step(
      {rows}, [&](const Batch&, int64_t) { return draws(1); }, 0.01);
  EXPECT_FALSE(report.finite);
  EXPECT_EQ(optimizer_->steps(), 0);
  for (const auto& [name, tensor] : network_->state())
    EXPECT_TRUE(at::equal(tensor, copies.at(name))) << name;
}

}  // namespace
}  // namespace elf
