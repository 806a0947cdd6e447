// Every knob of the ablations by the tools themselves, in miniature: the run trains, its loss falls, what it
// stored samples, and a resumed run ends where a straight one does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "support/command.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Outcome;
using test::slurp;
using test::spill;

class Knobs : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = fs::temp_directory_path() / ("elf_knobs_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    const std::string words[] = {"the", "king", "said", "unto", "his", "men",
                                 "go",  "up",   "and",  "see",  "land"};
    std::string text;
    for (int i = 0; i < 300; ++i) {
      for (int k = 0; k < 3 + i % 4; ++k) text += (k ? " " : "") + words[(i * 7 + k * k * 3 + k * i) % 11];
      text += "\n";
    }
    spill(folder_ / "docs.txt", text);
    must(
        "elf-prepare tokenizer --input docs.txt --vocab-size 64 --model-type word --extra-ids 0 --out words");
    must(
        "elf-prepare corpus --input docs.txt --tokenizer words --max-length 8 --valid-fraction 0.1 "
        "--valid-out valid.h5 --out docs.h5");
    must("elf-prepare table --data docs.h5 --kind svd --width 8 --out table");
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
  static void TearDownTestSuite() { fs::remove_all(folder_); }

  static Outcome tool(const std::string& command) {
    return test::run(folder_, "export OMP_NUM_THREADS=1; " + command);
  }
  static Outcome must(const std::string& command) {
    const Outcome outcome = tool(command);
    EXPECT_EQ(outcome.code, 0) << command << "\n" << outcome.err;
    return outcome;
  }
  static std::vector<double> held_out(const std::string& run) {
    std::vector<double> losses;
    std::istringstream text(slurp(folder_ / run / "metrics.jsonl"));
    for (std::string line; std::getline(text, line);) {
      const json parsed = json::parse(line);
      if (parsed.contains("valid_loss")) losses.push_back(parsed["valid_loss"]);
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

  static fs::path folder_;
};
fs::path Knobs::folder_;

TEST_F(Knobs, PredictionOfVelocity) {
  expect_works("v", "--set model.prediction=v");
}
TEST_F(Knobs, PredictionOfNoise) {
  expect_works("epsilon", "--set model.prediction=epsilon");
}

}  // namespace
}  // namespace elf
