// Rounds of distillation by the tools themselves: chained by one command, stopped and resumed, sampled with
// the stored settings, and one table at the end.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "elf/base/json.h"
#include "elf/tensor/safetensors.h"
#include "support/tool_test.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Outcome;
using test::slurp;
using test::spill;
using ::testing::HasSubstr;

// Made once: a text, a teacher of 150 steps, and the configuration of two rounds.
class Distill : public test::ToolTest {
 protected:
  static void SetUpTestSuite() {
    make_folder("distill");
    make_small_data();
    spill(folder_ / "teacher.yaml",
          "model: {depth: 2, hidden_size: 16, num_heads: 2, latent_dim: 8, bottleneck_dim: 8, "
          "num_time_tokens: 1, "
          "num_self_cond_cfg_tokens: 1, num_model_mode_tokens: 1}\n"
          "latents: {source: table, path: table, mean: 0.0, std: 1.0}\n"
          "data: {train: docs.h5, valid: valid.h5, tokenizer: words}\n"
          "flow: {pad_token: eos, denoiser_noise_scale: 0.5, decoder_noise_scale: 0.5}\n"
          "optimizer: {kind: adamw, lr: 3e-3, warmup_steps: 5, ema_decay: 0.9}\n"
          "train: {global_batch_size: 16, steps: 150, log_every: 5, valid_every: 0, save_every: 20}\n"
          "sampling: {steps: 16, gamma: 1.0, self_cond_cfg: 1.0}\n");
    spill(folder_ / "rounds.yaml",
          "base: teacher.yaml\n"
          "train: {objective: distillation, steps: 20}\n"
          "distillation: {teacher: teacher, student_steps: [4, 2], teacher_steps: [2, 4], gamma: [0.5, "
          "0.25], self_cond_cfg: 1.5, "
          "eval_samples: 30, eval_text: docs.txt}\n");
    must("elf-train --config teacher.yaml --out teacher");
    table_ = must("elf-train --config rounds.yaml --out rounds").out;
  }

  static std::string table_;
};
std::string Distill::table_;

TEST_F(Distill, OneTableOfAllRoundsWithThePublishedRows) {
  const json rows = parse_json_or_throw(slurp(folder_ / "rounds/rounds.json"));
  ASSERT_EQ(rows.size(), 5u);
  const std::pair<const char*, int> expected[] = {
      {"teacher", 8}, {"teacher", 4}, {"student", 4}, {"teacher", 2}, {"student", 2}};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(rows[i]["model"], expected[i].first);
    EXPECT_EQ(rows[i]["steps"], expected[i].second);
    EXPECT_EQ(rows[i]["samples"], 30);
    EXPECT_GT(rows[i]["perplexity"].get<double>(), 1.0);
    EXPECT_EQ(rows[i]["train_steps"], i == 2 || i == 4 ? 20 : 0);
  }
  EXPECT_THAT(table_, HasSubstr("| 34.33 / 5.16 |"));
  EXPECT_THAT(table_, HasSubstr("| 68.25 / 5.24 |"));
  EXPECT_EQ(table_, slurp(folder_ / "rounds/rounds.md"));
  // The same command does nothing again and says the same.
  const std::string before = slurp(folder_ / "rounds/rounds.json");
  EXPECT_EQ(must("elf-train --config rounds.yaml --out rounds").out, table_);
  EXPECT_EQ(slurp(folder_ / "rounds/rounds.json"), before);
}

TEST_F(Distill, AStudentSamplesWithItsFewStepsUnasked) {
  must("elf-sample --model rounds/steps-2 --num-samples 3 --output two.txt");
  const json made = parse_json_or_throw(slurp(folder_ / "two.txt.json"));
  EXPECT_EQ(made["sampler"]["steps"], 2);
  EXPECT_EQ(made["sampler"]["gamma"], 0.25);
  EXPECT_EQ(made["sampler"]["self_cond_cfg"], 1.5);
  must("elf-sample --model rounds/steps-4 --num-samples 3 --output four.txt");
  EXPECT_EQ(parse_json_or_throw(slurp(folder_ / "four.txt.json"))["sampler"]["steps"], 4);
}

TEST_F(Distill, RoundsStartFromTheOneBefore) {
  const std::string one =
      "elf-train --config rounds.yaml --set train.steps=1 --set optimizer.warmup_steps=10 --set "
      "distillation.eval_samples=0 ";
  must(one + "--out begin");
  // A first step with learning rate 0 changes nothing: the second round still is the teacher, by way of the
  // first.
  const TensorMap averages =
      read_safetensors(folder_ / "begin/steps-2/checkpoints/step-00000001/ema.safetensors");
  const TensorMap teacher = read_safetensors(folder_ / "teacher/checkpoints/step-00000150/ema.safetensors");
  ASSERT_EQ(averages.size(), teacher.size());
  for (const auto& [name, tensor] : averages)
    EXPECT_TRUE(at::allclose(tensor, teacher.at(name), 1e-5, 1e-7)) << name;
  // A round can be run alone by the configuration it stored.
  must("elf-train --config rounds/steps-2/config.yaml --out alone");
  expect_equal_checkpoints("alone/checkpoints/step-00000020", "rounds/steps-2/checkpoints/step-00000020");
}

// Stopped in the first round, then in the second; the same command goes on and ends where an undisturbed one
// does.
TEST_F(Distill, AChainStoppedAnywhereGoesOnBitwise) {
  const std::string command = "elf-train --config rounds.yaml --set distillation.eval_samples=0 --out ";
  for (const std::string round : {"steps-4", "steps-2"}) {
    const Outcome stopped = tool("ELF_FAULTS=kill_step@10:value=15 " + command + "broken");
    EXPECT_EQ(stopped.code, 85) << stopped.err;
    EXPECT_EQ(slurp(folder_ / "broken" / round / "checkpoints/latest"), "step-00000010\n");
  }
  must(command + "broken");
  must(command + "straight");
  for (const char* round : {"steps-4", "steps-2"}) {
    const std::string checkpoint = std::string(round) + "/checkpoints/step-00000020";
    expect_equal_checkpoints("broken/" + checkpoint, "straight/" + checkpoint);
  }
}

TEST_F(Distill, ATeacherThatDoesNotFitIsRefused) {
  const std::string command = "elf-train --config rounds.yaml --out bad ";
  expect_refusal(command + "--set model.depth=3",
                 {"teacher", "do not fit the model's configuration", "blocks.2."});
  expect_refusal(command + "--set flow.denoiser_noise_scale=0.6", {"flow.denoiser_noise_scale is 0.5 there"});
  expect_refusal(command + "--set latents.std=2", {"teacher", "latent"});
  expect_refusal(command + "--set distillation.teacher=gone", {"gone", "no such run"});
  expect_refusal(command + "--set distillation.teacher_steps=2", {"teacher_steps has 1 values"});
}

// The round is done then, and what follows does not begin.
TEST_F(Distill, ASignalInTheLastStepOfARoundStopsTheChain) {
  const std::string command = "elf-train --config rounds.yaml --out between";
  const std::string interrupted = "ELF_FAULTS=kill_step@20:value=15 " + command;
  const Outcome first = tool(interrupted);
  EXPECT_EQ(first.code, 85) << first.err;
  EXPECT_THAT(first.err, HasSubstr("stopped after round 1 of 2"));
  EXPECT_TRUE(fs::exists(folder_ / "between/steps-4/checkpoints/step-00000020"));
  EXPECT_FALSE(fs::exists(folder_ / "between/steps-2"));
  EXPECT_EQ(tool(interrupted).code, 85);  // the table is left
  EXPECT_TRUE(fs::exists(folder_ / "between/steps-2/checkpoints/step-00000020"));
  EXPECT_FALSE(fs::exists(folder_ / "between/rounds.md"));
  must(command);
  EXPECT_TRUE(fs::exists(folder_ / "between/rounds.md"));
  expect_equal_checkpoints("between/steps-2/checkpoints/step-00000020",
                           "rounds/steps-2/checkpoints/step-00000020");
}

}  // namespace
}  // namespace elf
