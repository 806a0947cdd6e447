// elf-prepare table, statistics and encoder as commands: what they write, and that wrong input ends with 2
// and leaves nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "elf/app/tools.h"
#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/data/dataset.h"
#include "elf/data/latent_cache.h"
#include "elf/model/latent_statistics.h"
#include "elf/model/t5.h"
#include "elf/model/token_table.h"
#include "elf/text/sentencepiece_tokenizer.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PrepareLatents : public ::testing::Test {
 protected:
  PrepareLatents() { tokens_ = write_data("data.h5", header()); }

  static DatasetInfo header(const std::string& settings = R"({"extra_ids": 5})") {
    DatasetInfo info;
    info.vocab_size = 30;
    info.max_length = 12;
    info.tokenizer_hash = "xxh128:mine";
    info.settings = settings;
    return info;
  }
  // Every `step`-th of fifty rows of 2 to 11 tokens and an EOS. Gives the number of tokens.
  int64_t write_data(const std::string& name, const DatasetInfo& info, int32_t step = 1) const {
    DatasetWriter writer(folder_ / name, info);
    for (int32_t row = 0; row < 50; row += step) {
      std::vector<int32_t> ids;
      for (int32_t i = 0; i < 2 + row % 10; ++i) ids.push_back(3 + (row * 7 + i * i) % 20);
      ids.push_back(1);
      writer.add_document(ids);
    }
    return writer.finish().tokens;
  }

  std::string path(const std::string& name) const { return folder_ / name; }
  int run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "elf-prepare");
    arguments.insert(arguments.end(), {"--threads", "1", "--device", "cpu"});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    return app::prepare(static_cast<int>(argv.size()), argv.data());
  }
  // What is said on stdout with --json.
  nlohmann::json answer(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    testing::internal::CaptureStdout();
    EXPECT_EQ(run(arguments), 0);
    return parse_json(testing::internal::GetCapturedStdout());
  }
  std::string refusal(const std::vector<std::string>& arguments) const {
    testing::internal::CaptureStderr();
    EXPECT_EQ(run(arguments), 2);
    return testing::internal::GetCapturedStderr();
  }
  bool left_nothing_temporary() const {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
      if (entry.path().filename().string().starts_with(".")) return false;
    }
    return true;
  }
  const test::TemporaryFolder scratch_;
  const fs::path folder_ = scratch_.path();
  int64_t tokens_ = 0;
};

TEST_F(PrepareLatents, StatisticsOfATableCountEveryTokenOnce) {
  ASSERT_EQ(
      run({"table", "--data", path("data.h5"), "--kind", "svd", "--width", "4", "--out", path("table")}), 0);
  // Few tokens at once: batches of rows of unequal length, and a last one that is not full.
  ASSERT_EQ(run({"statistics", "--data", path("data.h5"), "--table", path("table"), "--tokens-at-once", "40",
                 "--out", path("s.json")}),
            0);
  const at::Tensor table = load_token_table(path("table")).weight;
  const Dataset dataset = Dataset::open(path("data.h5"));
  std::vector<int64_t> all;
  for (int64_t row = 0; row < dataset.info().rows; ++row) {
    for (const int32_t id : dataset.tokens(row)) all.push_back(id);
  }
  const at::Tensor latents = table.index_select(0, at::tensor(all)).to(at::kDouble);
  const LatentStatistics statistics = read_statistics(path("s.json"));
  EXPECT_EQ(statistics.positions, tokens_);
  EXPECT_TRUE(test::all_close(statistics.channel_mean, latents.mean(0), 1e-9, 1e-12));
  EXPECT_TRUE(
      test::all_close(statistics.channel_std, latents.var(0, /*unbiased=*/false).sqrt(), 1e-9, 1e-12));
  EXPECT_NEAR(statistics.mean, latents.mean().item<double>(), 1e-12);
}

TEST_F(PrepareLatents, TheEncoderFitsTheData) {
  ASSERT_EQ(run({"encoder", "--data", path("data.h5"), "--preset", "t5-nano", "--steps", "2", "--batch", "4",
                 "--out", path("encoder")}),
            0);
  EXPECT_EQ(load_t5(path("encoder")).config.vocab_size, 30);
  EXPECT_EQ(
      run({"statistics", "--data", path("data.h5"), "--encoder", path("encoder"), "--out", path("s.json")}),
      0);
  EXPECT_EQ(run({"table", "--data", path("data.h5"), "--kind", "t5", "--encoder", path("encoder"), "--out",
                 path("t5table")}),
            0);
  EXPECT_EQ(load_token_table(path("t5table")).weight.sizes(), (std::vector<int64_t>{30, 64}));
}

TEST_F(PrepareLatents, ACacheHoldsEveryDifferentRow) {
  ASSERT_EQ(run({"encoder", "--data", path("data.h5"), "--preset", "t5-nano", "--steps", "1", "--batch", "4",
                 "--out", path("encoder")}),
            0);
  std::set<std::vector<int32_t>> different;
  const Dataset dataset = Dataset::open(path("data.h5"));
  for (int64_t row = 0; row < dataset.info().rows; ++row) different.insert(dataset.tokens(row));
  const std::vector<std::string> latents{"latents",       "--data", path("data.h5"), "--encoder",
                                         path("encoder"), "--out",  path("l.h5")};
  std::vector<std::string> dry = latents;
  dry.push_back("--dry-run");
  EXPECT_EQ(run(dry), 0);
  EXPECT_FALSE(fs::exists(path("l.h5")));
  for (const std::string dtype : {"float32", "bfloat16"}) {
    std::vector<std::string> wet = latents;
    wet.insert(wet.end(), {"--dtype", dtype, "--rows-at-once", "7"});
    ASSERT_EQ(run(wet), 0);
    const LatentCache cache = LatentCache::open(path("l.h5"));
    EXPECT_EQ(cache.info().dtype, dtype);
    EXPECT_EQ(cache.info().length, 12);
    EXPECT_EQ(cache.info().dim, 64);
    EXPECT_EQ(cache.info().data_hash, Dataset::open(path("data.h5")).info().data_hash);
    EXPECT_EQ(cache.info().rows, static_cast<int64_t>(different.size()));
    EXPECT_NEAR(static_cast<double>(fs::file_size(path("l.h5"))),
                static_cast<double>(latent_cache_bytes(cache.info().rows, 12, 64, dtype)), 40'000);
  }
  std::vector<std::string> half = latents;
  half.insert(half.end(), {"--dtype", "float16"});
  EXPECT_EQ(run(half), 2);
  EXPECT_TRUE(left_nothing_temporary());
}

TEST_F(PrepareLatents, WrongInputEndsWithTwoAndLeavesNothing) {
  EXPECT_EQ(run({"table", "--data", path("nothing.h5"), "--kind", "svd", "--width", "4", "--out", path("a")}),
            2);
  EXPECT_EQ(run({"table", "--data", path("data.h5"), "--kind", "svd", "--width", "29", "--out", path("a")}),
            2);  // fewer tokens than that
  EXPECT_EQ(run({"table", "--data", path("data.h5"), "--kind", "words", "--width", "4", "--out", path("a")}),
            2);
  EXPECT_EQ(run({"encoder", "--steps", "5", "--out", path("a")}), 2);
  EXPECT_EQ(run({"statistics", "--data", path("data.h5"), "--out", path("a")}), 2);
  save_token_table(folder_, {at::ones({30, 4}), {{"tokenizer_hash", "xxh128:other"}}});
  EXPECT_EQ(run({"statistics", "--data", path("data.h5"), "--table", folder_, "--out", path("a")}), 2);
  EXPECT_FALSE(fs::exists(path("a")));
  EXPECT_TRUE(left_nothing_temporary());
}

TEST_F(PrepareLatents, JsonIsWhatTheFilesSay) {
  nlohmann::json made = answer({"table", "--data", path("data.h5"), "--kind", "gaussian", "--width", "4",
                                "--seed", "3", "--out", path("table")});
  nlohmann::json written = load_token_table(path("table")).made;
  written["out"] = path("table");
  EXPECT_EQ(made, written);
  EXPECT_EQ(made.value("kind", ""), "gaussian");
  EXPECT_EQ(made.value("width", 0), 4);
  EXPECT_EQ(made.value("vocabulary", 0), 30);

  made = answer({"statistics", "--data", path("data.h5"), "--table", path("table"), "--out", path("s.json")});
  EXPECT_EQ(made, parse_json(read_file(path("s.json"))));
  EXPECT_EQ(made.value("positions", int64_t{0}), tokens_);
  EXPECT_EQ(made.value("of", ""), path("table"));

  made = answer({"encoder", "--data", path("data.h5"), "--preset", "t5-nano", "--steps", "2", "--batch", "4",
                 "--out", path("encoder")});
  written = parse_json(read_file(path("encoder/pretraining.json")));
  written["out"] = path("encoder");
  EXPECT_EQ(made, written);
  EXPECT_EQ(made.value("steps", 0), 2);
  EXPECT_EQ(made.value("tokenizer_hash", ""), "xxh128:mine");
  EXPECT_GT(made.value("last_loss", 0.0), 0.0);
}

// The table of half the rows, which are every second one.
TEST_F(PrepareLatents, ALongCorpusIsThinnedEvenly) {
  write_data("even.h5", header(), 2);
  const auto table = [&](const std::string& data, const std::string& most, const std::string& out) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(run({"table", "--data", path(data), "--kind", "svd", "--width", "4", "--max-tokens", most,
                   "--out", path(out)}),
              0);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(table("data.h5", std::to_string((tokens_ + 1) / 2), "thinned"),
              HasSubstr("counted one row of 2: "));
  EXPECT_THAT(table("even.h5", "0", "even"), ::testing::Not(HasSubstr("counted every")));
  table("data.h5", "0", "all");
  const at::Tensor thinned = load_token_table(path("thinned")).weight;
  EXPECT_TRUE(at::equal(thinned, load_token_table(path("even")).weight));
  EXPECT_FALSE(at::equal(thinned, load_token_table(path("all")).weight));
}

TEST_F(PrepareLatents, WhatDoesNotFitTheDataIsTold) {
  const auto table = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"table", "--data", path("data.h5"), "--out", path("a")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return refusal(arguments);
  };
  ASSERT_EQ(
      run({"encoder", "--preset", "t5-nano", "--steps", "0", "--vocab-size", "20", "--out", path("small")}),
      0);
  EXPECT_THAT(table({"--kind", "t5"}), HasSubstr("--kind t5 needs --encoder"));
  EXPECT_THAT(table({"--kind", "t5", "--encoder", path("small"), "--width", "5"}),
              HasSubstr("--width 5: the embeddings of " + path("small") + " are 64 wide; leave --width out"));
  EXPECT_THAT(table({"--kind", "t5", "--encoder", path("small")}),
              HasSubstr(path("small") + ": has 20 embeddings, " + path("data.h5") + " a vocabulary of 30"));
  EXPECT_THAT(table({"--kind", "gaussian", "--width", "1"}),
              HasSubstr("--width: found 1, expected at least 2"));

  const auto encoder = [&](const std::string& data, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"encoder", "--data", path(data), "--preset", "t5-nano",
                                       "--steps", "1",      "--out",    path("a")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return refusal(arguments);
  };
  EXPECT_THAT(encoder("data.h5", {"--vocab-size", "29"}),
              HasSubstr("--vocab-size 29: the data have a vocabulary of 30"));
  write_data("silent.h5", header("{}"));
  EXPECT_THAT(encoder("silent.h5"),
              HasSubstr("silent.h5: does not say how many extra ids its tokenizer has; give --tokenizer"));
  write_data("none.h5", header(R"({"extra_ids": 0})"));
  EXPECT_THAT(encoder("none.h5"), HasSubstr("none.h5: its tokenizer has no extra ids"));
  // The tokenizer itself knows better than what the data say.
  const auto tokenizer = SentencePieceTokenizer::from_bytes(read_file(test::golden("tokenizer/spiece.model")),
                                                            /*extra_ids=*/0, "spiece.model");
  tokenizer.save(path("tokenizer"));
  DatasetInfo info = header();
  info.vocab_size = tokenizer.size();
  info.tokenizer_hash = tokenizer.hash();
  write_data("other.h5", info);
  EXPECT_THAT(encoder("other.h5", {"--tokenizer", path("tokenizer")}),
              HasSubstr("other.h5: its tokenizer has no extra ids"));
  EXPECT_FALSE(fs::exists(path("a")));
  EXPECT_TRUE(left_nothing_temporary());
}

TEST_F(PrepareLatents, ReplacesWhatItWroteAndNothingElse) {
  const std::vector<std::string> table{"table",   "--data", path("data.h5"), "--kind",     "gaussian",
                                       "--width", "4",      "--out",         path("table")};
  EXPECT_EQ(run(table), 0);
  EXPECT_EQ(run(table), 0);
  write_file(path("table/notes.txt"), "mine");
  EXPECT_EQ(run(table), 2);
  EXPECT_EQ(read_file(path("table/notes.txt")), "mine");
  std::vector<std::string> again = table;
  again.push_back("--overwrite");
  EXPECT_EQ(run(again), 0);
}

}  // namespace
}  // namespace elf
