// The whole path by the tools themselves, on a tiny corpus: prepare, train, resume, sample, score; and what
// they say to wrong input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "elf/base/json.h"
#include "elf/data/dataset.h"
#include "elf/metrics/bleu.h"
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

// Made once for all tests of this program: text, tokenizer, datasets, tables, a model of 40 steps.
class Pipeline : public test::ToolTest {
 protected:
  static void SetUpTestSuite() {
    make_folder("pipeline");
    write_pairs();
    spill(folder_ / "docs.yaml", config("docs.h5", "valid.h5", "words", "table", ""));
    spill(folder_ / "pairs.yaml",
          config("pairs.h5", "pairs.h5", "chars", "gauss", "  label_drop_prob: 0.1\n"));
    make_small_data();
    must(
        "elf-prepare tokenizer --input pairs.src pairs.tgt --vocab-size 64 --model-type char --extra-ids 0 "
        "--out chars");
    must(
        "elf-prepare pairs --source pairs.src --target pairs.tgt --tokenizer chars --max-input-length 6 "
        "--max-length 14 --out pairs.h5");
    must("elf-prepare table --data pairs.h5 --kind gaussian --width 8 --out gauss");
    must("elf-train --config docs.yaml --out run40");
    must("elf-train --config docs.yaml --set train.steps=400 --set train.valid_every=100 --out run400");
    must("elf-train --config pairs.yaml --set train.steps=200 --out pairs-run");
  }

  static void write_pairs() {
    std::string source, target;
    for (int i = 0; i < 300; ++i) {
      const std::string word = kWords[i % 11].substr(0, 5) + std::string(1, static_cast<char>('a' + i % 5));
      source += word + "\n";
      target += std::string(word.rbegin(), word.rend()) + "\n";
    }
    spill(folder_ / "pairs.src", source);
    spill(folder_ / "pairs.tgt", target);
  }

  static std::string config(const std::string& train, const std::string& valid, const std::string& tokenizer,
                            const std::string& table, const std::string& flow) {
    return "model: {depth: 2, hidden_size: 16, num_heads: 2, latent_dim: 8, bottleneck_dim: 8, "
           "num_time_tokens: 1, num_self_cond_cfg_tokens: 1, num_model_mode_tokens: 1}\n"
           "latents: {source: table, path: " +
           table +
           ", mean: 0.0, std: 1.0}\n"
           "data: {train: " +
           train + ", valid: " + valid + ", tokenizer: " + tokenizer +
           "}\n"
           "flow:\n  pad_token: eos\n  denoiser_noise_scale: 0.5\n  decoder_noise_scale: 0.5\n" +
           flow +
           "optimizer: {kind: adamw, lr: 3e-3, warmup_steps: 5, schedule: linear, ema_decay: 0.9}\n"
           "train: {global_batch_size: 16, steps: 40, log_every: 5, valid_every: 10, save_every: 20}\n"
           "sampling: {steps: 4}\n";
  }

  // The samples among the lines that elf-train says.
  static std::vector<std::string> samples_in(const std::string& said) {
    std::vector<std::string> samples;
    std::istringstream lines(said);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("  | ")) samples.push_back(line.substr(4));
    }
    return samples;
  }
};

TEST_F(Pipeline, FortyStepsAreTwentyPlusTwentyBitwise) {
  must("elf-train --config docs.yaml --set train.steps=20 --set optimizer.schedule=constant --out half");
  must("elf-train --config docs.yaml --set train.steps=40 --set optimizer.schedule=constant --out half");
  must("elf-train --config docs.yaml --set train.steps=40 --set optimizer.schedule=constant --out straight");
  expect_equal_checkpoints("half/checkpoints/step-00000040", "straight/checkpoints/step-00000040");
  std::vector<int> steps;
  for (const json& line : metrics("half")) {
    if (line.contains("loss")) steps.push_back(line["step"]);
  }
  EXPECT_THAT(steps, ::testing::ElementsAre(5, 10, 15, 20, 25, 30, 35, 40));
}

TEST_F(Pipeline, AnInterruptedRunSavesAndGoesOn) {
  const std::string command =
      "elf-train --config docs.yaml --set train.steps=12 --set train.valid_every=0 --set "
      "train.save_every=0 --out broken";
  const Outcome first = tool("ELF_FAULTS=kill_step@7:value=15 " + command);
  EXPECT_EQ(first.code, 85) << first.err;
  EXPECT_EQ(slurp(folder_ / "broken/checkpoints/latest"), "step-00000007\n");
  const Outcome second = must(command);
  EXPECT_THAT(second.err, HasSubstr("resuming"));
}

// Evaluating and saving in between must not move anything (field case 21).
TEST_F(Pipeline, ValidationAndSavingChangeNoWeight) {
  must(
      "elf-train --config docs.yaml --set train.steps=20 --set train.valid_every=4 --set train.save_every=4 "
      "--out watched");
  must(
      "elf-train --config docs.yaml --set train.steps=20 --set train.valid_every=0 --set train.save_every=0 "
      "--out unwatched");
  expect_equal_checkpoints("watched/checkpoints/step-00000020", "unwatched/checkpoints/step-00000020");
}

TEST_F(Pipeline, MicroBatchesGiveTheSameWeights) {
  must("elf-train --config docs.yaml --set train.steps=5 --out whole");
  must("elf-train --config docs.yaml --set train.steps=5 --set train.micro_batch_size=3 --out parts");
  const TensorMap whole = read_safetensors(folder_ / "whole/checkpoints/step-00000005/model.safetensors");
  for (const auto& [name, tensor] :
       read_safetensors(folder_ / "parts/checkpoints/step-00000005/model.safetensors")) {
    EXPECT_LT((tensor - whole.at(name)).norm().item<double>(),
              1e-4 * whole.at(name).norm().item<double>() + 1e-6)
        << name;
  }
}

TEST_F(Pipeline, TrainingLowersTheHeldOutLoss) {
  std::vector<double> losses;
  for (const json& line : metrics("run400")) {
    if (line.contains("valid_loss")) losses.push_back(line["valid_loss"]);
  }
  ASSERT_GE(losses.size(), 2u);
  EXPECT_LT(losses.back(), 0.9 * losses.front());
}

TEST_F(Pipeline, SamplesDoNotDependOnTheBatch) {
  const std::string sample = "elf-sample --model run400 --num-samples 7 --seed 5 --batch-size ";
  const std::string one = must(sample + "1").out;
  EXPECT_EQ(std::count(one.begin(), one.end(), '\n'), 7);
  EXPECT_EQ(must(sample + "3").out, one);
  EXPECT_EQ(must(sample + "16").out, one);
  EXPECT_NE(must("elf-sample --model run400 --num-samples 7 --seed 6").out, one);
  // Fewer samples are the first ones of more.
  EXPECT_EQ(one.find(must("elf-sample --model run400 --num-samples 3 --seed 5").out), 0u);
}

TEST_F(Pipeline, OneOutputAnInput) {
  spill(folder_ / "inputs.txt", "king\n\nabcdefghijklmnop\nmen\n");
  const std::string sample =
      "elf-sample --model pairs-run --input inputs.txt --seed 1 --cfg 2 --format jsonl --batch-size ";
  const std::string all = must(sample + "4").out;
  EXPECT_EQ(must(sample + "1").out, all);
  std::istringstream lines(all);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const json record = parse_json_or_throw(line);
    EXPECT_EQ(record.at("index"), count);
    EXPECT_TRUE(record.contains("text") && record.contains("ids") && record.contains("seed") &&
                record.contains("condition"))
        << line;
  }
  EXPECT_EQ(count, 4);
}

// A first run tells what will be drawn; a second one has two of these three texts as its targets.
TEST_F(Pipeline, SamplesOfPairsAreScoredAgainstTheirTargets) {
  const std::string train =
      "elf-train --config pairs.yaml --set train.steps=2 --set train.sample_every=2 --set "
      "train.sample_count=3 --set sampling.batch_size=2 --set train.valid_every=0 --set train.save_every=0 ";
  const std::vector<std::string> texts = samples_in(must(train + "--out drawn").err);
  ASSERT_EQ(texts.size(), 3u);
  const std::vector<std::string> targets = {texts[0], "something else", texts[2]};
  const Dataset pairs = Dataset::open(folder_ / "pairs.h5");
  DatasetWriter writer(folder_ / "drawn.h5", pairs.info());
  for (int64_t row = 0; row < 3; ++row) {
    const std::vector<int32_t> ids = pairs.tokens(row);
    const auto target = ids.begin() + pairs.cond_length(row);
    writer.add_pair(std::vector<int32_t>(ids.begin(), target), std::vector<int32_t>(target, ids.end()),
                    pairs.source_text(row), targets[static_cast<size_t>(row)]);
  }
  writer.finish();
  EXPECT_EQ(samples_in(must(train + "--set data.valid=drawn.h5 --out scored").err), texts);
  int scored = 0;
  for (const json& line : metrics("scored")) {
    if (!line.contains("sample_exact")) continue;
    ++scored;
    EXPECT_DOUBLE_EQ(line.at("sample_exact").get<double>(), 2.0 / 3.0);
    EXPECT_DOUBLE_EQ(line.at("sample_bleu").get<double>(),
                     corpus_bleu(texts, {ReferenceStream(targets.begin(), targets.end())}).score);
  }
  EXPECT_EQ(scored, 1);
}

TEST_F(Pipeline, SamplesOfPairsNeedHeldOutInputs) {
  const std::string valid = ", valid: pairs.h5";
  std::string text = slurp(folder_ / "pairs.yaml");
  ASSERT_NE(text.find(valid), std::string::npos);
  spill(folder_ / "no-valid.yaml", text.erase(text.find(valid), valid.size()));
  expect_refusal("elf-train --config no-valid.yaml --set train.sample_every=2 --out no-valid",
                 {"train.sample_every is 2", "data.valid is not set"}, "no-valid");
}

TEST_F(Pipeline, ScoresReadSamples) {
  must("elf-sample --model run400 --num-samples 5 --format jsonl --output samples.jsonl");
  const json scores = parse_json_or_throw(must("elf-eval diversity --input samples.jsonl --json").out);
  EXPECT_EQ(scores.at("samples"), 5);
  EXPECT_TRUE(scores.contains("entropy") && scores.contains("distinct") && scores.contains("rep4"));
}

TEST_F(Pipeline, DryRunPrintsThePlan) {
  const json plan =
      parse_json_or_throw(must("elf-train --config docs.yaml --dry-run --json --out never").out);
  EXPECT_EQ(plan.at("steps"), 40);
  EXPECT_GT(plan.at("parameters").get<int64_t>(), 1000);
  EXPECT_GT(plan.at("tokens").get<double>(), 0);
  EXPECT_TRUE(plan.contains("config") && plan.contains("memory_gib"));
  EXPECT_FALSE(fs::exists(folder_ / "never"));
}

TEST_F(Pipeline, WrongInputIsRefusedInOneMessage) {
  expect_refusal("elf-train --config none.yaml", {"none.yaml", "no such file"});
  expect_refusal("elf-train --config docs.yaml --set train.globl_batch_size=8 --out bad",
                 {"globl_batch_size", "global_batch_size"}, "bad");
  expect_refusal("elf-train --config docs.yaml --set data.train=none.h5 --out bad",
                 {"none.h5", "no such file"}, "bad");
  expect_refusal("elf-train --config docs.yaml --set data.tokenizer=chars --out bad",
                 {"docs.h5", "tokenizer"}, "bad");
  expect_refusal("elf-train --config docs.yaml --set latents.path=gone --out bad", {"gone"}, "bad");
  expect_refusal("elf-train --config docs.yaml --set train.global_batch_size=100000 --out bad", {"100000"},
                 "bad");
  expect_refusal("elf-train --config docs.yaml --resume never --out run40", {"run40", "already"});
  expect_refusal("elf-train --config docs.yaml --set model.depth=3 --out run40", {"run40", "model"});
  expect_refusal("elf-sample --model none --num-samples 1", {"none"});
  expect_refusal("elf-sample --model run40", {"--num-samples"});
  expect_refusal("elf-sample --model pairs-run --num-samples 2", {"--input"});
  expect_refusal("elf-prepare corpus --input gone.txt --tokenizer words --max-length 8 --out bad.h5",
                 {"gone.txt"}, "bad.h5");
  spill(folder_ / "short.tgt", "one\ntwo\n");
  expect_refusal(
      "elf-prepare pairs --source pairs.src --target short.tgt --tokenizer chars --max-input-length 6 "
      "--max-length 14 --out bad.h5",
      {"pairs.src", "300", "short.tgt", "2"}, "bad.h5");
  expect_refusal("elf-eval bleu --hyp docs.txt --ref short.tgt", {"300", "2"});
}

TEST_F(Pipeline, NoToolWritesOverItsInput) {
  spill(folder_ / "mine.txt", "the king said\nsee the land\n");
  expect_refusal("elf-prepare corpus --input mine.txt --tokenizer words --max-length 8 --out ./mine.txt",
                 {"mine.txt", "input"});
  fs::create_symlink("mine.txt", folder_ / "link.txt");
  expect_refusal("elf-prepare corpus --input mine.txt --tokenizer words --max-length 8 --out link.txt",
                 {"link.txt", "input"});
  expect_refusal("elf-sample --model pairs-run --input mine.txt --output mine.txt", {"mine.txt", "input"});
  expect_refusal("elf-eval diversity --input mine.txt --output mine.txt", {"mine.txt", "input"});
  expect_refusal("elf-sample --model run400 --num-samples 1 --output words", {"words", "folder"});
  EXPECT_EQ(slurp(folder_ / "mine.txt"), "the king said\nsee the land\n");
}

TEST_F(Pipeline, AnotherTokenizerInARunIsRefused) {
  fs::copy(folder_ / "run400", folder_ / "mixed", fs::copy_options::recursive);
  fs::remove_all(folder_ / "mixed/tokenizer");
  fs::copy(folder_ / "chars", folder_ / "mixed/tokenizer", fs::copy_options::recursive);
  expect_refusal("elf-sample --model mixed --num-samples 1", {"latents", "tokenizer"});
}

TEST_F(Pipeline, TruncatedWeightsAreRefused) {
  fs::copy(folder_ / "run40", folder_ / "cut", fs::copy_options::recursive);
  const fs::path weights = folder_ / "cut/checkpoints/step-00000040/ema.safetensors";
  fs::resize_file(weights, fs::file_size(weights) - 1);
  expect_refusal("elf-sample --model cut --num-samples 1 --output bad.txt", {"ema.safetensors", "bytes"},
                 "bad.txt");
  // The run itself goes on from the checkpoint before, and says so.
  const Outcome resumed = must("elf-train --config docs.yaml --set train.steps=40 --out cut");
  EXPECT_THAT(resumed.err, HasSubstr("skipped"));
  expect_equal_checkpoints("cut/checkpoints/step-00000040", "run40/checkpoints/step-00000040");
}

}  // namespace
}  // namespace elf
