// A latent table that is trained: tied with the unembedding, each branch training its own use of it, rows
// normalised again after each step.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "elf/base/error.h"
#include "elf/flow/objective.h"
#include "elf/model/latent_codec.h"
#include "elf/model/model_dir.h"
#include "elf/tensor/random.h"
#include "elf/train/training_objective.h"
#include "support/tiny_networks.h"

namespace elf {
namespace {

using test::all_close;

class LearnedLatents : public ::testing::Test {
 protected:
  LearnedLatents() : network_(test::tiny_network("full")) {
    config_.model = network_->config();
    config_.latents = {
        .source = LatentSource::kLearned, .path = "", .mean = 0.0, .std = 1.0, .statistics = ""};
    codec_ = make_latent_codec(config_.latents, at::kCPU);
    batch_.ids = at::arange(2 * 16).reshape({2, 16});
    batch_.valid_mask = at::ones({2, 16}, at::kBool);
    batch_.cond_mask = at::zeros({2, 16}, at::kBool);
    batch_.samples = {0, 1};
  }
  at::Tensor table() const { return network_->unembedding(); }
  // Gradient of the table by a step in one branch, or both.
  at::Tensor gradient(double decoder_prob) {
    config_.flow.decoder_prob = decoder_prob;
    for (const ParamRef& p : network_->parameters()) p.tensor.mutable_grad().reset();
    FlowObjective objective(*network_, *codec_, config_);
    objective.loss(batch_, 3, objective.weight(batch_)).total.backward();
    return table().grad();
  }

  std::unique_ptr<ElfNet> network_;
  std::unique_ptr<LatentCodec> codec_;
  RunConfig config_;
  Batch batch_;
};

TEST_F(LearnedLatents, AreTheNormalisedColumnsOfTheUnembedding) {
  EXPECT_EQ(codec_->dim(), 0);
  EXPECT_THROW(codec_->encode(batch_.ids, {}), Error);
  codec_->bind(table());
  EXPECT_EQ(codec_->dim(), 32);
  EXPECT_EQ(codec_->vocabulary(), 97);
  const at::Tensor latents = codec_->encode(batch_.ids, {}).detach();
  ASSERT_EQ(latents.sizes(), (std::vector<int64_t>{2, 16, 32}));
  EXPECT_TRUE(all_close(latents.mean(-1), at::zeros({2, 16}), 0, 1e-5));
  EXPECT_TRUE(all_close(latents.square().mean(-1), at::ones({2, 16}), 0, 1e-4));
  const at::Tensor column = table().detach().select(1, 17);  // of token 17: row 1, position 1
  const at::Tensor centred = column - column.mean();
  EXPECT_TRUE(all_close(latents[1][1], centred / centred.square().mean().sqrt(), 1e-5, 1e-5));
  EXPECT_THROW(codec_->encode(at::full({1, 1}, 97, at::kLong), {}), Error);
}

// Denoise rows train the table as the way in (through x), decode rows as the way out (through the logits)
// only.
TEST_F(LearnedLatents, EachBranchTrainsItsOwnUseOfTheTable) {
  const at::Tensor denoise = gradient(0);
  ASSERT_TRUE(denoise.defined());
  EXPECT_GT(denoise.narrow(1, 0, 32).abs().max().item<double>(), 0);
  EXPECT_EQ(denoise.narrow(1, 32, 97 - 32).abs().max().item<double>(),
            0);  // tokens that are not in the batch

  const at::Tensor decode = gradient(1).clone();
  config_.flow.decoder_prob = 1;
  const StepDraws draws = draw_step(config_.flow, {16, 32}, config_.train.seed, 3, batch_.samples);
  const ObjectiveInput frozen{codec_->encode(batch_.ids, {}).detach(), batch_.ids, batch_.valid_mask,
                              batch_.cond_mask};
  for (const ParamRef& p : network_->parameters()) p.tensor.mutable_grad().reset();
  objective(*network_, Model::network_traits(config_), frozen, draws, config_.flow).total.backward();
  EXPECT_TRUE(test::close_to_largest(decode, table().grad(), 1e-5));
}

TEST_F(LearnedLatents, RowsAreNormalisedAgainAfterAnUpdate) {
  FlowObjective objective(*network_, *codec_, config_);
  {
    const at::NoGradGuard no_grad;
    table().mul_(3).add_(1);
  }
  objective.after_update();
  EXPECT_TRUE(all_close(table().detach().mean(0), at::zeros({97}), 0, 1e-5));
  EXPECT_TRUE(all_close(table().detach().square().mean(0), at::ones({97}), 0, 1e-4));
  // A table that is not learned is left alone.
  RunConfig other = config_;
  other.latents.source = LatentSource::kTable;
  const at::Tensor before = table().detach().clone();
  FlowObjective(*network_, *codec_, other).after_update();
  EXPECT_TRUE(at::equal(table().detach(), before));
}

}  // namespace
}  // namespace elf
