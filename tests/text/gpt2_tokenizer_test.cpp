// GPT-2's byte-level BPE against the published tokenizer: every text of golden/eval/gpt2_bpe.json, exactly.
#include "elf/text/gpt2_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "elf/base/files.h"
#include "elf/base/json.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

const std::filesystem::path kTables = std::filesystem::path(ELF_TEST_DIR).parent_path() / "data" / "gpt2";

const Gpt2Tokenizer& tokenizer() {
  static const Gpt2Tokenizer loaded = Gpt2Tokenizer::load(kTables);
  return loaded;
}

TEST(Gpt2Tokenizer, EveryPublishedCase) {
  const json cases =
      parse_json_or_throw(read_file(std::filesystem::path(ELF_TEST_DIR) / "golden/eval/gpt2_bpe.json"));
  EXPECT_EQ(cases.size(), 110u);
  for (const json& example : cases) {
    const auto ids = example["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer().encode(example["text"].get<std::string>()), ids) << example["text"];
    EXPECT_EQ(tokenizer().decode(ids), example["decoded"].get<std::string>());
  }
  EXPECT_EQ(tokenizer().size(), 50257);
  EXPECT_EQ(tokenizer().end_of_text(), 50256);
}

TEST(Gpt2Tokenizer, Pieces) {
  EXPECT_THAT(gpt2_pieces("I'll  go,\n\n  now 42!"),
              ElementsAre("I", "'ll", " ", " go", ",", "\n\n ", " now", " 42", "!"));
  EXPECT_THAT(gpt2_pieces("a  "), ElementsAre("a", "  "));
  EXPECT_THAT(gpt2_pieces(" \u00e9t\u00e9\u00a0x"), ElementsAre(" \u00e9t\u00e9", "\u00a0", "x"));
}

TEST(Gpt2Tokenizer, LongWordsTakeLittleTime) {
  const std::string word(200000, 'a');
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(tokenizer().decode(tokenizer().encode(word)), word);
  EXPECT_LT(std::chrono::steady_clock::now() - start,
            std::chrono::minutes(2));  // quadratic would take hours
}

TEST(Gpt2Tokenizer, SaysWhatIsWrongWithItsFiles) {
  const test::TemporaryFolder folder;
  const auto load = [&] { Gpt2Tokenizer::load(folder.path()); };
  EXPECT_THAT(test::usage_message(load), HasSubstr("vocab.json"));
  folder.write("merges.txt", "#version: 0.2\n\u0120 t\n");
  folder.write("vocab.json", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  EXPECT_THAT(test::usage_message(load), HasSubstr("Git LFS"));
  folder.write("vocab.json", R"({"a": 0, "<|endoftext|>": 1})");
  EXPECT_THAT(test::usage_message(load), HasSubstr("no token for the byte 0"));
  folder.write("vocab.json", read_file(kTables / "vocab.json"));
  folder.write("merges.txt", "#version: 0.2\n\u0120 t\nqq zz\n");
  EXPECT_THAT(test::usage_message(load), HasSubstr("merges.txt:3: 'qqzz' is no token"));
}

}  // namespace
}  // namespace elf
