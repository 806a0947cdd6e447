// The training objective against golden/loss, every case. Plain form: every intermediate 1e-5 (velocities in
// the units of predictions), loss terms 1e-5, gradients 1e-4 of the largest entry. Fast form: loss terms
// 1e-5, gradients 1e-4 of the largest entry, and equal to the plain form (1e-5; gradients 2e-5).
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "elf/base/error.h"
#include "elf/flow/objective.h"
#include "flow/plain_objective.h"
#include "support/golden_gradients.h"
#include "support/tiny_networks.h"

namespace elf {
namespace {

using test::all_close;
using test::close_to_largest;
using test::golden;
using test::golden_json;
using test::take_gradients;

struct LossCase {
  nlohmann::json about;
  TensorMap tensors;
  std::unique_ptr<ElfNet> network;
  FlowConfig config;
  NetworkTraits traits;
  ObjectiveInput input;
  StepDraws draws;

  explicit LossCase(const std::string& name) {
    about = golden_json("loss/loss.json").at(name);
    tensors = read_safetensors(golden("loss/" + name + ".safetensors"));
    network = test::tiny_network(about.at("network"));
    read_config(about.at("config"));
    traits.self_cond = config.self_cond_prob > 0;
    traits.cfg_tokens = network->config().num_self_cond_cfg_tokens > 0;
    traits.vocab_size = network->config().vocab_size;
    const double mean = about.at("config").at("latent_mean"), std = about.at("config").at("latent_std");
    input = {(at("in/encoder_output") - mean) / std, at("in/input_ids"),
             at("in/attention_mask").to(at::kBool), at("in/cond_mask").to(at::kBool)};
    const bool uniform_time = config.time_schedule == TimeDistribution::kUniform;
    draws = {at(uniform_time ? "draw/t_uniform" : "draw/t_normal"),
             at("draw/eps"),
             at("draw/decoder_row").to(at::kBool),
             at("draw/p_normal"),
             at("draw/decoder_eps"),
             at("draw/self_cond_uniform"),
             at("draw/w_uniform"),
             at("in/label_drop").to(at::kBool)};
  }
  at::Tensor at(const std::string& name) const {
    const auto found = tensors.find(name);
    return found == tensors.end() ? at::Tensor() : found->second;
  }

 private:
  void read_config(const nlohmann::json& c) {
    config = test::golden_flow_config(c);
    config.time_schedule =
        c.at("time_schedule") == "uniform" ? TimeDistribution::kUniform : TimeDistribution::kLogitNormal;
    config.label_drop_prob = c.at("label_drop_prob");
  }
};

class LossGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(LossGolden, PlainFormHasEveryIntermediate) {
  const LossCase c(GetParam());
  const test::PlainLoss plain = test::plain_objective(*c.network, c.traits, c.input, c.draws, c.config);
  int compared = 0;
  for (const auto& [name, expected] : c.tensors) {
    if (!name.starts_with("mid/")) continue;
    const auto found = plain.mid.find(name.substr(4));
    ASSERT_NE(found, plain.mid.end()) << name;
    // Velocities are predictions divided by max(1 - t, t_eps), down to 0.05: compared in the units of
    // predictions.
    const bool is_velocity = name.starts_with("mid/v_");
    const at::Tensor unit =
        is_velocity ? at::clamp_min(1 - c.at("mid/t"), c.config.t_eps).reshape({-1, 1, 1}) : at::ones({});
    EXPECT_TRUE(all_close(found->second * unit, expected * unit, 1e-5, 1e-5)) << name;
    ++compared;
  }
  EXPECT_GE(compared, 15);
  EXPECT_TRUE(all_close(plain.total, c.at("out/loss"), 1e-5, 1e-5));
  EXPECT_TRUE(all_close(plain.ce_mean, c.at("out/ce_loss"), 1e-5, 1e-5));
  EXPECT_TRUE(all_close(plain.l2_mean, c.at("out/l2_loss"), 1e-5, 1e-5));
  plain.total.backward();
  test::expect_golden_gradients("loss/" + GetParam(), c.about, take_gradients(*c.network), 1e-4);
}

TEST_P(LossGolden, FastFormEqualsGoldenAndPlain) {
  const LossCase c(GetParam());
  const Loss fast = objective(*c.network, c.traits, c.input, c.draws, c.config);
  EXPECT_TRUE(all_close(fast.total, c.at("out/loss"), 1e-5, 1e-5));
  EXPECT_TRUE(all_close(fast.ce_sum / fast.ce_positions.clamp_min(1), c.at("out/ce_loss"), 1e-5, 1e-5));
  EXPECT_TRUE(all_close(fast.l2_sum / fast.l2_positions.clamp_min(1), c.at("out/l2_loss"), 1e-5, 1e-5));
  EXPECT_EQ((fast.ce_positions + fast.l2_positions).item<double>(),
            c.about.at("loss_positions").get<double>());
  fast.total.backward();
  const TensorMap fast_gradients = take_gradients(*c.network);
  test::expect_golden_gradients("loss/" + GetParam(), c.about, fast_gradients, 1e-4);

  const test::PlainLoss plain = test::plain_objective(*c.network, c.traits, c.input, c.draws, c.config);
  EXPECT_TRUE(all_close(fast.total, plain.total, 1e-5, 1e-6));
  plain.total.backward();
  for (const auto& [name, gradient] : take_gradients(*c.network)) {
    EXPECT_TRUE(close_to_largest(fast_gradients.at(name), gradient, 2e-5)) << name;
  }
  const at::Tensor decode_mask = plain.mid.at("loss_mask") * c.draws.decoder_row.unsqueeze(1);
  EXPECT_EQ(fast.correct.item<double>(),
            (plain.mid.at("logits").argmax(-1).eq(c.input.ids) * decode_mask).sum().item<double>());
}

// The vocabulary head in many pieces changes nothing (1e-6; gradients 1e-5): a vocabulary that claims to be
// huge makes pieces of 5 positions.
TEST_P(LossGolden, VocabularyInPieces) {
  const LossCase c(GetParam());
  const Loss whole = objective(*c.network, c.traits, c.input, c.draws, c.config);
  whole.total.backward();
  const TensorMap expected = take_gradients(*c.network);
  NetworkTraits traits = c.traits;
  traits.vocab_size = (int64_t{1} << 25) / 5;
  const Loss pieces = objective(*c.network, traits, c.input, c.draws, c.config);
  EXPECT_TRUE(all_close(pieces.total, whole.total, 1e-6, 1e-6));
  EXPECT_TRUE(at::equal(pieces.correct, whole.correct));
  pieces.total.backward();
  for (const auto& [name, gradient] : take_gradients(*c.network)) {
    EXPECT_TRUE(close_to_largest(gradient, expected.at(name), 1e-5)) << name;
  }
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(
      all_close(objective(*c.network, traits, c.input, c.draws, c.config).total, whole.total, 1e-6, 1e-6));
}

std::vector<std::string> loss_cases() {
  std::vector<std::string> names;
  const nlohmann::json cases = golden_json("loss/loss.json");
  for (const auto& [name, about] : cases.items()) names.push_back(name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Golden, LossGolden, ::testing::ValuesIn(loss_cases()),
                         [](const auto& info) { return info.param; });

// Options that the published code lacks: fast against plain (1e-5; gradients 2e-5).
void expect_fast_equals_plain(const LossCase& c) {
  const Loss fast = objective(*c.network, c.traits, c.input, c.draws, c.config);
  fast.total.backward();
  const TensorMap gradients = take_gradients(*c.network);
  const test::PlainLoss plain = test::plain_objective(*c.network, c.traits, c.input, c.draws, c.config);
  EXPECT_TRUE(all_close(fast.total, plain.total, 1e-5, 1e-6));
  plain.total.backward();
  for (const auto& [name, gradient] : take_gradients(*c.network)) {
    EXPECT_TRUE(close_to_largest(gradients.at(name), gradient, 2e-5)) << name;
  }
}

TEST(Objective, CleanConditionInTheDecodeBranch) {
  LossCase c("cond_eos_labeldrop");
  const double noisy = objective(*c.network, c.traits, c.input, c.draws, c.config).total.item<double>();
  c.config.decode_condition = DecodeCondition::kClean;
  EXPECT_NE(objective(*c.network, c.traits, c.input, c.draws, c.config).total.item<double>(), noisy);
  expect_fast_equals_plain(c);
}

TEST(Objective, DropoutMakesTheGuidanceTargetAForwardOfItsOwn) {
  LossCase c("uncond_pad_mixed");
  ModelConfig config = c.network->config();
  config.dropout = 0.2;
  c.network = std::make_unique<ElfNet>(config, at::kCPU);
  c.network->load(test::tiny_weights("full"));
  c.network->set_dropout(nn::DropoutKey{1, 2, {0, 1, 2}, 0});
  c.traits.dropout = true;
  const double with_dropout =
      objective(*c.network, c.traits, c.input, c.draws, c.config).total.item<double>();
  EXPECT_GT(std::abs(with_dropout - c.about.at("loss").get<double>()), 1e-3);
  expect_fast_equals_plain(c);
}

// Rows of a batch in two micro-batches, divided by the positions of both: losses and gradients add up (1e-5).
TEST(Objective, MicroBatchesAddUp) {
  const LossCase c("cond_eos_labeldrop");
  const Loss whole = objective(*c.network, c.traits, c.input, c.draws, c.config);
  whole.total.backward();
  const TensorMap expected = take_gradients(*c.network);
  const double positions = (whole.ce_positions + whole.l2_positions).item<double>();
  double total = 0;
  for (const auto& [start, count] : {std::pair<int64_t, int64_t>{0, 1}, {1, 3}}) {
    const auto rows = [start = start, count = count](const at::Tensor& x) {
      return x.narrow(0, start, count);
    };
    const ObjectiveInput input{rows(c.input.latents), rows(c.input.ids), rows(c.input.valid_mask),
                               rows(c.input.cond_mask)};
    const StepDraws& d = c.draws;
    const StepDraws draws{rows(d.time),        rows(d.eps),       rows(d.decoder_row), rows(d.p_normal),
                          rows(d.decoder_eps), rows(d.self_cond), rows(d.w),           rows(d.label_drop)};
    const Loss part = objective(*c.network, c.traits, input, draws, c.config, positions);
    part.total.backward();
    total += part.total.item<double>();
  }
  EXPECT_NEAR(total, whole.total.item<double>(), 1e-5 * total);
  for (const auto& [name, gradient] : take_gradients(*c.network)) {
    EXPECT_TRUE(close_to_largest(gradient, expected.at(name), 1e-5)) << name;
  }
}

TEST(Objective, PaddingOutOfTheLossHasNoGradientAndNoWeight) {
  LossCase c("uncond_pad_mixed");
  const double loss = objective(*c.network, c.traits, c.input, c.draws, c.config).total.item<double>();
  c.input.ids = at::where(c.input.valid_mask, c.input.ids, 5);  // other targets at padding: nothing changes
  EXPECT_EQ(objective(*c.network, c.traits, c.input, c.draws, c.config).total.item<double>(), loss);
  c.config.pad_token = PadToken::kEos;
  EXPECT_NE(objective(*c.network, c.traits, c.input, c.draws, c.config).total.item<double>(), loss);
}

}  // namespace
}  // namespace elf
