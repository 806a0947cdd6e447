// elf-inspect on every format: what is told, and that what is not whole is told so.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "convert_fixture.h"
#include "elf/base/json.h"
#include "elf/data/dataset.h"
#include "elf/data/latent_cache.h"
#include "elf/model/latent_statistics.h"
#include "elf/text/sentencepiece_tokenizer.h"
#include "support/model_folders.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::golden;
using test::Outcome;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Inspect : public test::ConvertFixture {};

TEST_F(Inspect, TellsWhatFilesHold) {
  json object = inspected(golden("elf_tiny/checkpoint.pt").string());
  EXPECT_EQ(object.at("kind"), "torch");
  EXPECT_EQ(object.at("step"), 2);
  EXPECT_EQ(object.at("tensors").at("params.proj_kernel"), (json{{"dtype", "Float"}, {"shape", {24, 32}}}));
  object = inspected(golden("torch/bad_object.pt").string());
  EXPECT_EQ(object.at("skipped"), (json{{"posix.system", 1}}));
  EXPECT_EQ(object.at("content").at("extra"), "not run: posix.system");
  EXPECT_FALSE(fs::exists(folder_ / "was_run"));
  object = inspected(golden("elf_tiny/params.safetensors").string());
  EXPECT_EQ(object.at("kind"), "safetensors");
  EXPECT_EQ(object.at("parameters"), 50577);
  object = inspected(golden("tokenizer/spiece.model").string());
  EXPECT_EQ(object.at("kind"), "tokenizer");
  EXPECT_EQ(object.at("vocabulary"), 520);
  object = inspected(golden("t5/model_relu_bin").string());
  EXPECT_EQ(object.at("kind"), "encoder");
  EXPECT_EQ(object.at("files"), json({"config.json", "pytorch_model.bin"}));
  EXPECT_THAT(done("elf-inspect " + golden("elf_tiny/params.safetensors").string()),
              HasSubstr("  proj_kernel  Float [24,32]\n"));

  test::spill(folder_ / "x.txt", "hello");
  EXPECT_THAT(refused("elf-inspect x.txt"), HasSubstr("x.txt"));
  EXPECT_THAT(refused("elf-inspect absent"), HasSubstr("no such file"));
  EXPECT_THAT(refused("elf-inspect"), HasSubstr("PATH"));
}

TEST_F(Inspect, SaysWhatIsNotWhole) {
  const std::string good = test::slurp(golden("elf_tiny/params.safetensors"));
  test::spill(folder_ / "cut.safetensors", good.substr(0, good.size() - 1));
  test::spill(folder_ / "model.pt", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  for (const std::string file : {"cut.safetensors", "model.pt"}) {
    const Outcome outcome = run("elf-inspect " + file + " --json");
    EXPECT_EQ(outcome.code, 2);
    const json object = parse_json_or_throw(outcome.out);
    EXPECT_EQ(object.at("complete"), false);
    EXPECT_THAT(object.at("problem").get<std::string>(),
                HasSubstr(file == "model.pt" ? "git lfs pull" : "truncated"));
    EXPECT_THAT(outcome.err, HasSubstr("not whole"));
  }
  import("params.safetensors", "m");
  fs::remove(folder_ / "m/model.safetensors");
  EXPECT_THAT(refused("elf-inspect m"), HasSubstr("model.safetensors is missing"));
}

TEST_F(Inspect, TellsOfCachesOfLatents) {
  const at::Tensor latents = at::arange(24).view({6, 4}).to(at::kFloat);
  {
    LatentCacheWriter writer(folder_ / "l.h5", {.length = 6,
                                                .dim = 4,
                                                .pad_id = 1,
                                                .encoder = "xxh128:e",
                                                .dtype = "bfloat16",
                                                .data_hash = "xxh128:d"});
    for (uint64_t key = 0; key < 3; ++key) writer.add(key, latents);
    writer.finish();
  }
  json object = inspected("l.h5");
  EXPECT_EQ(object, (json{{"kind", "latents"},
                          {"path", "l.h5"},
                          {"complete", true},
                          {"rows", 3},
                          {"length", 6},
                          {"dim", 4},
                          {"dtype", "bfloat16"},
                          {"bytes", 3 * (24 * 2 + 8)},
                          {"pad_id", 1},
                          {"encoder", "xxh128:e"},
                          {"data_hash", "xxh128:d"}}));
  EXPECT_EQ(inspected("l.h5", "--verify").at("verified"), true);
  EXPECT_THAT(done("elf-inspect l.h5"), AllOf(HasSubstr("kind: latents\n"), HasSubstr("rows: 3\n")));

  // The second row's bits changed: told when the rows are read.
  std::string bytes = test::slurp(folder_ / "l.h5");
  const std::string row(reinterpret_cast<const char*>(latents.to(at::kBFloat16).data_ptr()), 48);
  const size_t at = bytes.find(row, bytes.find(row) + 1);
  ASSERT_NE(at, std::string::npos);
  bytes[at + 5] ^= 1;
  test::spill(folder_ / "l.h5", bytes);
  EXPECT_TRUE(inspected("l.h5").at("complete").get<bool>());
  EXPECT_THAT(refused("elf-inspect l.h5 --verify"),
              AllOf(HasSubstr("l.h5"), HasSubstr("'/latents' is damaged")));
  test::spill(folder_ / "cut.h5", bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(refused("elf-inspect cut.h5"), HasSubstr("not whole"));

  test::spill(folder_ / "s.json", to_json({0.5, 2, at::zeros({3}), at::ones({3}), 77, "xxh128:e"}).dump());
  object = inspected("s.json");
  EXPECT_EQ(object.at("kind"), "statistics");
  EXPECT_EQ(object.at("std"), 2);
  EXPECT_EQ(object.at("dim"), 3);
  EXPECT_EQ(object.at("positions"), 77);
  EXPECT_EQ(object.at("source"), "xxh128:e");
  test::spill(folder_ / "s.json", R"({"channel_mean": [1]})");
  EXPECT_THAT(refused("elf-inspect s.json"), HasSubstr("'mean'"));
  test::spill(folder_ / "s.json", R"({"other": [1]})");
  EXPECT_THAT(refused("elf-inspect s.json"), HasSubstr("nothing that is known"));
}

// The first word is a file, whatever follows it: what is wrong is the option.
TEST_F(Inspect, AMistypedOptionIsNamedBehindAFile) {
  EXPECT_THAT(refused("elf-inspect l.h5 --verfy"),
              AllOf(HasSubstr("unknown option '--verfy'"), HasSubstr("'--verify'")));
  EXPECT_THAT(refused("elf-inspect l.h5 --show lots"), HasSubstr("--show"));
}

TEST_F(Inspect, EncodesByTheRowsOfATable) {
  test::write_tiny_table(folder_ / "table");
  const at::Tensor rows = read_safetensors(folder_ / "table/table.safetensors").at("weight");
  const at::Tensor ids = at::tensor({7, 0, 519, 7, 3, 1}).to(at::kLong).view({2, 3});
  const auto encode = [&](const TensorMap& inputs, const std::string& output) {
    write_safetensors(folder_ / "in.safetensors", inputs);
    return "elf-inspect encode --encoder table --inputs in.safetensors --output " + output;
  };
  done(encode({{"input_ids", ids}}, "out.safetensors"));
  Metadata about;
  const at::Tensor hidden =
      read_safetensors(folder_ / "out.safetensors", about).at("last_hidden_state").clone();
  ASSERT_EQ(hidden.sizes().vec(), (std::vector<int64_t>{2, 3, 32}));
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_TRUE(at::equal(hidden[b][i], rows[ids[b][i].item<int64_t>()])) << b << " " << i;
  }
  EXPECT_EQ(about.at("model"), "table");
  EXPECT_EQ(about.at("weights_hash"), digest_of_file(folder_ / "table/table.safetensors"));
  // Neither the type of the ids nor a mask changes a row.
  done(
      encode({{"input_ids", ids.to(at::kInt)}, {"mask", at::zeros({2, 3}, at::kLong)}}, "again.safetensors"));
  EXPECT_TRUE(at::equal(read_safetensors(folder_ / "again.safetensors").at("last_hidden_state"), hidden));

  done(encode({{"input_ids", at::empty({0, 3}, at::kLong)}}, "none.safetensors"));
  EXPECT_EQ(read_safetensors(folder_ / "none.safetensors").at("last_hidden_state").sizes().vec(),
            (std::vector<int64_t>{0, 3, 32}));

  for (const int64_t outside : {520, -1})
    EXPECT_THAT(refused(encode({{"input_ids", at::full({1, 3}, outside, at::kLong)}}, "bad.safetensors")),
                HasSubstr("input_ids: an id is outside the 520 rows of table"));
  EXPECT_THAT(refused(encode({{"input_ids", ids.to(at::kFloat)}}, "bad.safetensors")),
              HasSubstr("input_ids is Float, expected int64"));
  EXPECT_THAT(refused(encode({{"input_ids", ids.view({6})}}, "bad.safetensors")),
              HasSubstr("tensor 'input_ids' has shape [6], expected 2 dimensions"));
  EXPECT_THAT(refused(encode({{"input_ids", ids}, {"mask", at::ones({2, 2}, at::kLong)}}, "bad.safetensors")),
              HasSubstr("mask has shape [2, 2], expected [B, L] or [B, L, L]"));
  EXPECT_FALSE(fs::exists(folder_ / "bad.safetensors"));
}

TEST_F(Inspect, TellsOfScorers) {
  const std::string small = golden("eval/gpt2_small_vocab").string();
  json object = inspected(small);
  EXPECT_EQ(object.at("kind"), "gpt2");
  EXPECT_EQ(object.at("files"), json({"config.json", "model.safetensors"}));
  EXPECT_EQ(object.at("vocabulary"), 53);
  EXPECT_EQ(object.at("max_length"), 40);
  EXPECT_EQ(object.at("d_model"), 12);
  EXPECT_EQ(object.at("layers"), 3);
  EXPECT_EQ(object.at("heads"), 4);
  EXPECT_EQ(object.at("has_tokenizer"), false);
  // Embeddings of tokens and positions, three blocks of 12 D^2 + 13 D, the last norm.
  EXPECT_EQ(object.at("parameters"), (53 + 40) * 12 + 3 * (12 * 144 + 13 * 12) + 24);
  EXPECT_EQ(object.at("tensors").size(), 2 + 3 * 12 + 2);
  EXPECT_EQ(inspected(golden("eval/gpt2_small_vocab_bin").string()).at("parameters"),
            object.at("parameters"));

  fs::copy(small, folder_ / "damaged");
  test::spill(folder_ / "damaged/model.safetensors", "nothing of the kind");
  EXPECT_THAT(refused("elf-inspect damaged"), AllOf(HasSubstr("model.safetensors"), HasSubstr("not whole")));

  object = inspected((golden("").parent_path().parent_path().parent_path() / "data/gpt2").string());
  EXPECT_EQ(object.at("kind"), "tokenizer");
  EXPECT_EQ(object.at("model_type"), "gpt2");
  EXPECT_EQ(object.at("vocabulary"), 50257);
  EXPECT_EQ(object.at("eos_id"), 50256);

  fs::create_directories(folder_ / "rounds/steps-4");
  test::spill(folder_ / "rounds/steps-4/config.yaml", "");
  EXPECT_THAT(refused("elf-inspect rounds"), HasSubstr("it holds these: steps-4"));
}

TEST_F(Inspect, ShowsAndVerifiesDatasets) {
  DatasetInfo header;
  header.kind = "pairs";
  header.tokenizer_hash = SentencePieceTokenizer::load(golden("tokenizer/spiece.model")).hash();
  header.vocab_size = 520;
  header.max_length = 16;
  header.max_input_length = 8;
  header.settings = R"({"pack": false})";
  DatasetWriter writer(folder_ / "d.h5", header);
  for (int32_t i = 0; i < 300; ++i)
    writer.add_pair({10 + i % 7, 11}, {20 + i % 5, 21, 1}, "source " + std::to_string(i),
                    "target " + std::to_string(i));
  writer.finish();
  const json object =
      inspected("d.h5", "--verify --show 3 --tokenizer " + golden("tokenizer/spiece.model").string());
  EXPECT_EQ(object.at("kind"), "dataset");
  EXPECT_EQ(object.at("sequences"), 300);
  EXPECT_EQ(object.at("tokens"), 1500);
  EXPECT_EQ(object.at("vocabulary"), 520);
  EXPECT_EQ(object.at("max_length"), 16);
  EXPECT_EQ(object.at("tokenizer_hash"), header.tokenizer_hash);
  EXPECT_EQ(object.at("verified"), true);
  ASSERT_EQ(object.at("sample_rows").size(), 3);
  EXPECT_EQ(object.at("sample_rows")[2].at("source"), "source 200");
  EXPECT_TRUE(object.at("sample_rows")[0].at("text").is_string());
  EXPECT_THAT(done("elf-inspect d.h5 --show 1"), HasSubstr("target 0"));
  EXPECT_FALSE(inspected("d.h5").contains("verified"));

  // A changed byte anywhere is told, or is one that nothing reads.
  const std::string good = test::slurp(folder_ / "d.h5");
  int told = 0;
  for (size_t at = 64; at < good.size(); at += good.size() / 40) {
    std::string changed = good;
    changed[at] ^= 0x10;
    test::spill(folder_ / "changed.h5", changed);
    const Outcome outcome = run("elf-inspect changed.h5 --verify");
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 2) << at << outcome.err;
    told += outcome.code == 2;
  }
  EXPECT_GE(told, 1);
  std::string changed = good;
  changed[good.find("x\x01") + 20] ^= 0x10;  // inside a deflated chunk
  test::spill(folder_ / "changed.h5", changed);
  EXPECT_EQ(run("elf-inspect changed.h5 --verify").code, 2);
}

}  // namespace
}  // namespace elf
