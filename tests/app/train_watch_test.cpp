// What elf-train shows before, while and after it trains: figures, samples, warnings, plans.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elf/base/json.h"
#include "elf/base/sanitizers.h"
#include "support/tiny_run.h"

namespace elf {
namespace {

using nlohmann::json;
using test::Outcome;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class WatchedRun : public test::TinyRun {};

TEST_F(WatchedRun, LogsOneLineAnInterval) {
  const Outcome outcome = must("elf-train --config run.yaml --out logged --set train.log_every=5");
  for (const char* step : {"step 5/20", "step 10/20", "step 15/20", "step 20/20"})
    EXPECT_THAT(outcome.err, HasSubstr(step));
  for (const char* part :
       {"epoch ", "denoise ", "decode ", "lr ", "gradient ", "tokens/s", "MFU ", "GiB", " left"})
    EXPECT_THAT(outcome.err, HasSubstr(part));
  const json line = metrics("logged").at(0);
  for (const char* key :
       {"step", "epoch", "loss", "l2_loss", "ce_loss", "accuracy", "lr", "grad_norm", "tokens_per_second",
        "mfu", "data_wait", "pad_fraction", "skipped_steps", "peak_memory_mib"})
    EXPECT_TRUE(line.contains(key)) << key;
}

TEST_F(WatchedRun, WarnsOfSpikesAndOfWaitingForData) {
  const Outcome spike =
      must("elf-train --config run.yaml --out spiky --set train.steps=30 --set train.spike_factor=0.5");
  EXPECT_THAT(spike.err, HasSubstr("the loss jumped to "));
  const Outcome slow =
      must("ELF_FAULTS=sleep_reader@1-4:value=1 elf-train --config run.yaml --out slow --set train.steps=4");
  EXPECT_THAT(slow.err, HasSubstr("of the time went into waiting for data"));
  EXPECT_GT(last_metrics("slow").at("data_wait").get<double>(), 0.1);
  const Outcome plain = must("elf-train --config run.yaml --out plain --set train.steps=10");
  EXPECT_THAT(plain.err, Not(HasSubstr("the loss jumped")));
}

TEST_F(WatchedRun, SamplesAndScoresOnTheWay) {
  const Outcome outcome = must(
      "elf-train --config run.yaml --out sampled --set train.sample_every=10 --set train.sample_count=3 "
      "--set train.save_every=10 --set 'train.hook=echo checkpoint $ELF_STEP; echo \"{\\\"gen_ppl\\\": "
      "7}\"'");
  int samples = 0, hooks = 0;
  for (const json& line : metrics("sampled")) {
    samples += line.contains("sample_entropy");
    hooks += line.contains("gen_ppl");
  }
  EXPECT_EQ(samples, 2);
  EXPECT_EQ(hooks, 2);
  EXPECT_THAT(outcome.err, HasSubstr("  | "));
  // Sampling on the way moves nothing.
  must("elf-train --config run.yaml --out unsampled");
  expect_equal_checkpoints(checkpoint("sampled", 20), checkpoint("unsampled", 20));
}

TEST_F(WatchedRun, PerplexityAsTheBestNeedsAnEntropyFloor) {
  const Outcome outcome = tool("elf-train --config run.yaml --out never --set train.best_metric=gen_ppl");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("train.best_min_entropy"));
}

// What the paper and its code say of each run.
TEST_F(WatchedRun, PublishedConfigurations) {
  struct Published {
    const char* file;
    double millions;
    const char* epochs;
    const char* length;
    const char* pad;
    const char* noise;
  };
  for (const Published& run : {Published{"elf-b-owt", 105, "5.0", "1024", "pad", "5.0"},
                               {"elf-m-owt", 342, "4.0", "1024", "pad", "5.0"},
                               {"elf-l-owt", 652, "3.0", "1024", "pad", "5.0"},
                               {"elf-b-wmt14-de-en", 105, "100.0", "128", "eos", "1.0"},
                               {"elf-b-xsum", 105, "100.0", "1088", "eos", "1.0"}}) {
    const json plan =
        parse_json_or_throw(must("elf-train --dry-run --json --config " ELF_TEST_DIR "/../configs/" +
                                 std::string(run.file) + ".yaml")
                                .out);
    const json& config = plan.at("config");
    EXPECT_NEAR(plan.at("parameters").get<double>() / 1e6, run.millions, 0.01 * run.millions) << run.file;
    EXPECT_GT(plan.at("memory_gib").get<double>(), 1.0);
    EXPECT_EQ(config.at("train.epochs"), run.epochs) << run.file;
    EXPECT_EQ(config.at("data.max_length"), run.length);
    EXPECT_EQ(config.at("flow.pad_token"), run.pad);
    EXPECT_EQ(config.at("flow.decoder_noise_scale"), run.noise);
    EXPECT_EQ(config.at("train.global_batch_size"), "512");
    EXPECT_EQ(config.at("optimizer.kind"), "muon");
    EXPECT_EQ(config.at("optimizer.blr"), "0.001");
    EXPECT_EQ(config.at("optimizer.ema_decay"), "0.9999");
    const bool conditional = std::string(run.pad) == "eos";
    EXPECT_EQ(config.at("flow.label_drop_prob"), conditional ? "0.1" : "0.0");
    EXPECT_EQ(config.at("optimizer.warmup_steps"), conditional ? "5000" : "0");
    EXPECT_EQ(config.at("optimizer.warmup_epochs"), conditional ? "0.0" : "0.5");
    EXPECT_EQ(config.at("sampling.sampler"), conditional ? "ode" : "sde");
    EXPECT_EQ(config.at("sampling.steps"), conditional ? "64" : "32");
    EXPECT_EQ(config.at("sampling.cfg"), conditional ? "2.0" : "1.0");
  }
}

TEST_F(WatchedRun, MemoryIsAsEstimated) {
#ifdef ELF_SANITIZED
  GTEST_SKIP() << "sanitizers need memory of their own";
#endif
  for (const std::string more : {"", " --set train.recompute=true", " --set optimizer.kind=adamw"}) {
    const std::string run =
        "elf-train --config run.yaml --set model.hidden_size=256 --set model.num_heads=4 "
        "--set model.depth=8 --set train.global_batch_size=256 --set train.steps=2 --out large" +
        more;
    const json plan = parse_json_or_throw(must(run + " --dry-run --json").out);
    must("rm -rf large; " + run);
    const double measured = last_metrics("large").at("peak_memory_mib").get<double>() / 1024;
    EXPECT_NEAR(plan.at("memory_gib").get<double>(), measured, 0.15 * measured) << more;
  }
}

// What --dry-run prints is a configuration, of the very same run.
TEST_F(WatchedRun, DryRunPrintsAConfiguration) {
  const std::string plan = must("elf-train --config run.yaml --dry-run --out planned").out;
  EXPECT_THAT(plan, AllOf(HasSubstr("\n# parameters   "), HasSubstr("\n# steps        20 ("),
                          HasSubstr("\n# memory       "), Not(HasSubstr("# missing"))));
  test::spill(folder_ / "printed.yaml", plan);
  EXPECT_EQ(must("elf-train --config printed.yaml --dry-run").out, plan);
  EXPECT_THAT(must("elf-train --config run.yaml --dry-run --set train.steps=0 --set train.minutes=3").out,
              HasSubstr("\n# steps        as many as fit in train.minutes\n"));
  EXPECT_THAT(
      must("elf-train --config run.yaml --dry-run --set data.train=gone.h5 --set data.max_length=8").out,
      HasSubstr("\n# missing      "));
}

TEST_F(WatchedRun, EveryKeyIsExplained) {
  const std::string keys = must("elf-train --help-config").out;
  const json plan = parse_json_or_throw(must("elf-train --config run.yaml --dry-run --json").out);
  for (const auto& [key, value] : plan.at("config").items())
    EXPECT_THAT(keys, HasSubstr(key.substr(key.find('.') + 1))) << key;
}

TEST_F(WatchedRun, DryRunNamesWhatIsMissing) {
  const json plan =
      parse_json_or_throw(must("elf-train --config run.yaml --dry-run --json --set data.train=gone.h5 "
                               "--set data.max_length=8 --out never")
                              .out);
  ASSERT_EQ(plan.at("missing").size(), 1u);
  EXPECT_THAT(plan.at("missing").at(0).get<std::string>(),
              ::testing::AllOf(HasSubstr("data.train "), HasSubstr("gone.h5: no such file")));
  const Outcome outcome = tool("elf-train --config run.yaml --dry-run --set data.tokenizer=gone --out never");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("model.vocab_size is not known"));
  EXPECT_THAT(outcome.err, HasSubstr("gone: no such file"));
}

}  // namespace
}  // namespace elf
