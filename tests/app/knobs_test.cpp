// Every knob of the ablations by the tools themselves, in miniature: the run trains, its loss falls, what it
// stored samples, and a resumed run ends where a straight one does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "elf/base/json.h"
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

// The published code does not know these networks: their weights go into model directories only, which
// sample as the runs do.
TEST_F(Knobs, AdaLnZero) {
  expect_works("adaln", "--set model.conditioning=adaln_zero");
  const std::string texts = must("elf-sample --model adaln --num-samples 5 --seed 3").out;
  must("elf-convert export adaln --out adaln-dir");
  EXPECT_EQ(must("elf-sample --model adaln-dir --num-samples 5 --seed 3").out, texts);
  must(
      "elf-convert import adaln-dir/model.safetensors --config run.yaml --set model.max_length=8 "
      "--tokenizer words --table table --out adaln-in");
  EXPECT_EQ(must("elf-sample --model adaln-in --num-samples 5 --seed 3").out, texts);
  expect_refusal("elf-convert export adaln --to elf-pytorch --out adaln.pt", {"adaLN-Zero"}, "adaln.pt");
}

TEST_F(Knobs, LearnedTable) {
  const std::string learned = "--set latents.source=learned --set latents.path= ";
  expect_works("learned", learned);
  const std::string texts = must("elf-sample --model learned --num-samples 5 --seed 3").out;
  must("elf-convert export learned --out learned-dir");
  EXPECT_EQ(must("elf-sample --model learned-dir --num-samples 5 --seed 3").out, texts);
  EXPECT_TRUE(parse_json_or_throw(must("elf-inspect learned-dir --json").out).at("has_encoder").get<bool>());
  const std::string train = "elf-train --config run.yaml --out bad " + learned;
  expect_refusal(train + "--set latents.std=0.2", {"latents.std", "set 0 and 1"}, "bad");
  expect_refusal(train + "--set latents.path=table", {"latents.path"}, "bad");
  expect_refusal(train + "--set train.objective=distillation --set distillation.teacher=learned",
                 {"distillation", "latents.source"}, "bad");
}

// Stage one: a network that does nothing but decode, with a fifth of the tokens masked. Stage two: one that
// does nothing but denoise.
TEST_F(Knobs, ASeparateDecoder) {
  must(
      "elf-train --config run.yaml --set flow.decoder_prob=1 --set flow.decoder_mask_prob=0.2 --set "
      "train.steps=200 --out decoder");
  expect_works("denoiser", "--set flow.decoder_prob=0 --set latents.decoder=decoder");
  // The run folder holds its own copy of the decoder.
  fs::rename(folder_ / "decoder", folder_ / "elsewhere");
  must("elf-sample --model denoiser --num-samples 2 --output two.txt");
  const json record = parse_json_or_throw(slurp(folder_ / "two.txt.json"));
  EXPECT_EQ(record.at("decoder_hash").get<std::string>().size(),
            record.at("weights_hash").get<std::string>().size());
  EXPECT_NE(record.at("decoder_hash"), record.at("weights_hash"));
  // It is part of what is handed on.
  const std::string texts = must("elf-sample --model denoiser --num-samples 5 --seed 3").out;
  must("elf-convert export denoiser --out handed-on");
  fs::rename(folder_ / "denoiser", folder_ / "away");
  EXPECT_EQ(must("elf-sample --model handed-on --num-samples 5 --seed 3").out, texts);
  expect_refusal("elf-convert export handed-on --to elf-pytorch --out d.pt", {"latents.decoder"}, "d.pt");
  // A student reads off by the same decoder, and samples while it trains.
  must(
      "elf-train --config handed-on/config.yaml --set data.train=docs.h5 --set data.valid=valid.h5 --set "
      "train.objective=distillation --set distillation.teacher=handed-on --set "
      "distillation.student_steps=2 --set distillation.teacher_steps=2 --set distillation.gamma=1.5 --set "
      "distillation.self_cond_cfg=2 --set distillation.eval_samples=2 --set train.steps=4 --set "
      "train.sample_every=2 --set train.sample_count=2 --out student");
  must("elf-sample --model student --num-samples 2");

  const std::string train = "elf-train --config run.yaml --out bad --set flow.decoder_prob=0 ";
  expect_refusal("elf-train --config run.yaml --set latents.decoder=elsewhere --out bad",
                 {"flow.decoder_prob is 0.2"}, "bad");
  expect_refusal(train + "--set latents.decoder=gone", {"gone"}, "bad");
  expect_refusal(train + "--set latents.decoder=away", {"not trained to decode"}, "bad");
  must("elf-prepare table --data docs.h5 --kind gaussian --width 8 --out other");
  expect_refusal(train + "--set latents.decoder=elsewhere --set latents.path=other", {"other latents"},
                 "bad");
}

}  // namespace
}  // namespace elf
