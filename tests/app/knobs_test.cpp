// Every knob of the ablations by the tools themselves, in miniature: the run trains, its loss falls, what it
// stored samples, and a resumed run ends where a straight one does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/tool_test.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Outcome;
using test::slurp;
using test::spill;

class Knobs : public test::ToolTest {
 protected:
  static void SetUpTestSuite() {
    make_folder("knobs");
    make_small_data();
    spill(folder_ / "run.yaml",
          "model: {depth: 2, hidden_size: 16, num_heads: 2, latent_dim: 8, bottleneck_dim: 8, "
          "num_time_tokens: 1, "
          "num_self_cond_cfg_tokens: 1, num_model_mode_tokens: 1}\n"
          "latents: {source: table, path: table, mean: 0.0, std: 1.0}\n"
          "data: {train: docs.h5, valid: valid.h5, tokenizer: words}\n"
          "flow: {pad_token: eos, denoiser_noise_scale: 0.5, decoder_noise_scale: 0.5}\n"
          "optimizer: {kind: adamw, lr: 3e-3, warmup_steps: 5, ema_decay: 0.9}\n"
          "train: {global_batch_size: 16, steps: 60, log_every: 5, valid_every: 20, save_every: 30}\n"
          "sampling: {steps: 4}\n");
  }

  static std::vector<double> held_out(const std::string& run) {
    std::vector<double> losses;
    for (const json& line : metrics(run)) {
      if (line.contains("valid_loss")) losses.push_back(line["valid_loss"]);
    }
    return losses;
  }
  // Trains with `options`, checks that it learns, samples and resumes.
  static void expect_works(const std::string& name, const std::string& options) {
    SCOPED_TRACE(name);
    const std::string command = "elf-train --config run.yaml " + options + " --out ";
    must(command + name);
    const std::vector<double> losses = held_out(name);
    ASSERT_EQ(losses.size(), 3u);
    EXPECT_LT(losses.back(), losses.front());
    must(command + name + "-half --set train.steps=30");
    must(command + name + "-half");
    for (const char* file : {"model.safetensors", "ema.safetensors"}) {
      const std::string at = std::string("checkpoints/step-00000060/") + file;
      EXPECT_TRUE(slurp(folder_ / name / at) == slurp(folder_ / (name + "-half") / at)) << file;
    }
    const std::string one = must("elf-sample --model " + name + " --num-samples 5 --seed 3").out;
    EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 5);
    EXPECT_EQ(must("elf-sample --model " + name + " --num-samples 5 --seed 3 --batch-size 2").out, one);
  }
};

TEST_F(Knobs, PredictionOfVelocity) {
  expect_works("v", "--set model.prediction=v");
}
TEST_F(Knobs, PredictionOfNoise) {
  expect_works("epsilon", "--set model.prediction=epsilon");
}

}  // namespace
}  // namespace elf
