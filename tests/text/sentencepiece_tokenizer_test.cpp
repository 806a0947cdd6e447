// golden/tokenizer: all cases exactly as the published environment's T5 tokenizer gives them.
#include "elf/text/sentencepiece_tokenizer.h"

#include <nlohmann/json.hpp>

#include "elf/base/files.h"
#include "elf/base/json.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

using test::TemporaryFolder;
using test::usage_message;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

const std::string kGolden = ELF_TEST_DIR "/golden/tokenizer/";

const SentencePieceTokenizer& golden_tokenizer() {
  static const SentencePieceTokenizer tokenizer = SentencePieceTokenizer::load(kGolden + "spiece.model");
  return tokenizer;
}

const nlohmann::json& golden_cases() {
  static const nlohmann::json cases = parse_json_or_throw(read_file(kGolden + "cases.json"));
  return cases;
}

Ids without_special(const SentencePieceTokenizer& tokenizer, const Ids& ids) {
  Ids kept;
  for (const int32_t id : ids) {
    if (!tokenizer.is_special(id)) kept.push_back(id);
  }
  return kept;
}

void expect_decoded(const nlohmann::json& entry, const Ids& ids) {
  const auto& tokenizer = golden_tokenizer();
  EXPECT_EQ(tokenizer.decode(ids, {.clean_up = true}), entry["decoded"].get<std::string>()) << entry;
  EXPECT_EQ(tokenizer.decode(ids), entry["decoded_without_cleanup"].get<std::string>()) << entry;
  const DecodeOptions with_special{.skip_special = false, .clean_up = true};
  EXPECT_EQ(tokenizer.decode(ids, with_special), entry["decoded_with_special"].get<std::string>()) << entry;
}

TEST(SentencePieceTokenizer, HasTheGoldenVocabulary) {
  const auto& tokenizer = golden_tokenizer();
  const auto golden = parse_json_or_throw(read_file(kGolden + "tokenizer.json"));
  EXPECT_EQ(tokenizer.pieces(), golden["piece_count"].get<int64_t>());
  EXPECT_EQ(tokenizer.size(), golden["len_tokenizer"].get<int64_t>());
  EXPECT_EQ(tokenizer.pad_id(), golden["pad"].get<int>());
  EXPECT_EQ(tokenizer.eos_id(), golden["eos"].get<int>());
  EXPECT_EQ(tokenizer.unk_id(), golden["unk"].get<int>());
  EXPECT_EQ(tokenizer.id_of("<extra_id_0>"), golden["extra_id_0"].get<int>());
  EXPECT_EQ(tokenizer.id_of("<extra_id_99>"), golden["extra_id_99"].get<int>());
  EXPECT_EQ(tokenizer.piece(golden["extra_id_99"].get<int>()), "<extra_id_99>");
  for (const auto& piece : golden["pieces"]) {
    const int64_t id = piece["id"].get<int64_t>();
    EXPECT_EQ(tokenizer.piece(id), piece["piece"].get<std::string>());
    EXPECT_EQ(tokenizer.is_special(id), piece["control"].get<bool>() || piece["unknown"].get<bool>());
  }
}

TEST(SentencePieceTokenizer, EncodesTheGoldenTexts) {
  const auto& tokenizer = golden_tokenizer();
  ASSERT_EQ(golden_cases()["encode"].size(), 79u);
  for (const auto& entry : golden_cases()["encode"]) {
    const auto text = entry["text"].get<std::string>();
    const Ids ids = tokenizer.encode(text);
    EXPECT_EQ(ids, entry["ids"].get<Ids>()) << text;
    EXPECT_EQ(tokenizer.encode(text, /*add_eos=*/true), entry["ids_with_eos"].get<Ids>()) << text;
    EXPECT_EQ(tokenizer.encode_plain(text), entry["sentencepiece_ids"].get<Ids>()) << text;
    std::vector<std::string> pieces;
    for (const int32_t id : ids) pieces.push_back(tokenizer.piece(id));
    EXPECT_EQ(pieces, entry["tokens"].get<std::vector<std::string>>()) << text;
    const std::string decoded = tokenizer.decode(ids);
    EXPECT_TRUE(tokenizer.decodes_to(ids, decoded)) << text;
    EXPECT_FALSE(tokenizer.decodes_to(ids, decoded + "x")) << text;
    EXPECT_EQ(tokenizer.decodes_to(ids, text), decoded == text) << text;
    if (!decoded.empty())
      EXPECT_FALSE(tokenizer.decodes_to(ids, decoded.substr(0, decoded.size() - 1))) << text;
    expect_decoded(entry, ids);
    EXPECT_EQ(tokenizer.decode_plain(entry["sentencepiece_ids"].get<Ids>()),
              entry["sentencepiece_decoded"].get<std::string>())
        << text;
  }
}

TEST(SentencePieceTokenizer, DecodesTheGoldenIds) {
  ASSERT_EQ(golden_cases()["decode"].size(), 59u);
  for (const auto& entry : golden_cases()["decode"]) {
    const Ids ids = entry["ids"].get<Ids>();
    expect_decoded(entry, ids);
    const Ids plain = without_special(golden_tokenizer(), ids);
    EXPECT_EQ(golden_tokenizer().decode_plain(plain), entry["sentencepiece_decoded"].get<std::string>())
        << entry;
  }
}

TEST(SentencePieceTokenizer, CleansUpTheGoldenTexts) {
  for (const auto& entry : golden_cases()["cleanup"]) {
    EXPECT_EQ(clean_up_spaces(entry["text"].get<std::string>()), entry["cleaned"].get<std::string>());
  }
}

TEST(SentencePieceTokenizer, EncodesTheGoldenJsonRows) {
  for (const auto& row : golden_cases()["jsonl"]["loaded"]) {
    EXPECT_EQ(golden_tokenizer().encode(row["input"].get<std::string>()),
              row["condition_input_ids"].get<Ids>());
    EXPECT_EQ(golden_tokenizer().encode(row["target"].get<std::string>()), row["input_ids"].get<Ids>());
  }
}

TEST(SentencePieceTokenizer, SkipsIdsOutsideTheVocabulary) {
  const auto& tokenizer = golden_tokenizer();
  EXPECT_EQ(tokenizer.decode(Ids{-1, 4, 520, 2000000000, -2147483647}), "the");
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>{int64_t{1} << 40, 4, -7}), "the");
  EXPECT_EQ(tokenizer.decode_plain(Ids{-1, 4, 520}), "the");
  EXPECT_EQ(tokenizer.piece(-1), "");
  EXPECT_EQ(tokenizer.piece(520), "");
  EXPECT_FALSE(tokenizer.is_special(520));
}

TEST(SentencePieceTokenizer, NamesUnknownStretches) {
  std::vector<std::string> unknown;
  const std::string text = "\u6771\u4eac tower \u4eca";
  EXPECT_EQ(golden_tokenizer().encode(text, false, &unknown), golden_tokenizer().encode(text));
  EXPECT_EQ(unknown, (std::vector<std::string>{"\u6771\u4eac", "\u4eca"}));
}

// Texts of many megabytes are encoded in parts; each word comes out as it does alone.
TEST(SentencePieceTokenizer, EncodesVeryLongTextsWordByWord) {
  const std::vector<std::string> words = {"the", "cat\u00e9", "sat", "  on\t", "\u6771\u4eac", "mat."};
  std::string text;
  Ids expected;
  for (size_t i = 0; text.size() < 2'500'000; ++i) {
    const std::string& word = words[i * i % words.size()];
    text += word + " ";
    const Ids ids = golden_tokenizer().encode(word);
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(golden_tokenizer().encode(text), expected);
}

TEST(SentencePieceTokenizer, KeepsExtraIdsInItsFolder) {
  const TemporaryFolder folder;
  const std::string model = read_file(kGolden + "spiece.model");
  for (const int extra : {0, 7, 100}) {
    const auto made = SentencePieceTokenizer::from_bytes(model, extra, "golden");
    made.save(folder / "tok");
    for (const auto& path : {folder / "tok", folder / "tok/spiece.model"}) {
      const auto loaded = SentencePieceTokenizer::load(path);
      EXPECT_EQ(loaded.extra_ids(), extra);
      EXPECT_EQ(loaded.size(), 420 + extra);
      EXPECT_EQ(loaded.hash(), made.hash());
    }
  }
  const auto none = SentencePieceTokenizer::from_bytes(model, 0, "golden");
  EXPECT_NE(none.hash(), golden_tokenizer().hash());
  EXPECT_EQ(none.encode("<extra_id_5>"), none.encode_plain("<extra_id_5>"));
}

TEST(SentencePieceTokenizer, SaysWhatIsWrongWithAFile) {
  const TemporaryFolder folder;
  const std::string model = read_file(kGolden + "spiece.model");
  const auto message = [&](const std::string& content) {
    const std::string path = folder.write("spiece.model", content);
    const std::string text = usage_message([&] { SentencePieceTokenizer::load(path); });
    EXPECT_THAT(text, HasSubstr(path));
    return text;
  };
  EXPECT_THAT(message("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 791656\n"),
              HasSubstr("Git LFS pointer"));
  EXPECT_THAT(message("<!DOCTYPE html><html></html>"), HasSubstr("HTML"));
  EXPECT_THAT(message(""), HasSubstr("empty"));
  EXPECT_THAT(message("just text"), HasSubstr("no SentencePiece model"));
  for (const size_t cut : {size_t{1}, size_t{1000}, model.size() / 2, model.size() - 20}) {
    EXPECT_THAT(message(model.substr(0, model.size() - cut)), HasSubstr("cut short")) << cut;
  }
  EXPECT_THAT(usage_message([&] { SentencePieceTokenizer::load(folder / "none"); }),
              HasSubstr("no such file"));
}

}  // namespace
}  // namespace elf
