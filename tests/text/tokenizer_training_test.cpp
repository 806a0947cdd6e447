// Trained tokenizers: T5 ids, determinism, and word and character vocabularies that give the text back
// exactly.
#include "elf/text/tokenizer_training.h"

#include "support/errors.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

using test::TemporaryFolder;
using test::usage_message;
using ::testing::HasSubstr;

// Sentences of `words` words, each at least once.
std::string word_text(int words) {
  std::string text;
  for (int i = 0; i < words; ++i) {
    text +=
        "w" + std::to_string(i) + " the w" + std::to_string(i / 2) + " and w" + std::to_string(i % 7) + "\n";
  }
  return text;
}

TEST(TokenizerTraining, HasT5IdsAndExtraIds) {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.txt", word_text(300));
  for (const std::string type : {"unigram", "bpe", "word", "char"}) {
    TokenizerTraining training{
        .source = {.files = {file}}, .vocab_size = type == "unigram" ? 40 : 100, .model_type = type};
    const auto trained = train_tokenizer(training);
    EXPECT_EQ(trained.tokenizer.pad_id(), 0) << type;
    EXPECT_EQ(trained.tokenizer.eos_id(), 1) << type;
    EXPECT_EQ(trained.tokenizer.unk_id(), 2) << type;
    EXPECT_EQ(trained.tokenizer.model_type(), type);
    EXPECT_EQ(trained.tokenizer.size(), trained.tokenizer.pieces() + 100) << type;
    EXPECT_LE(trained.tokenizer.pieces(), training.vocab_size) << type;
    EXPECT_EQ(trained.counts.records_used, 300) << type;
    EXPECT_EQ(trained.tokenizer.hash(), train_tokenizer(training).tokenizer.hash()) << type;
    if (type == "unigram" || type == "bpe") {
      EXPECT_EQ(trained.tokenizer.pieces(), training.vocab_size) << type;
      EXPECT_EQ(trained.tokenizer.decode(trained.tokenizer.encode("the w12 and")), "the w12 and") << type;
    }
  }
}

TEST(TokenizerTraining, WordVocabularyKeepsEveryWord) {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.txt", word_text(2000));
  const auto tokenizer =
      train_tokenizer({.source = {.files = {file}}, .vocab_size = 5000, .model_type = "word", .extra_ids = 0})
          .tokenizer;
  EXPECT_EQ(tokenizer.size(), 3 + 2000 + 2);  // the words, "the", "and"; special pieces
  for (int i = 0; i < 2000; ++i) {
    const std::string word = "w" + std::to_string(i);
    const auto ids = tokenizer.encode(word);
    ASSERT_EQ(ids.size(), 1u) << word;
    ASSERT_NE(ids[0], tokenizer.unk_id()) << word;
    ASSERT_EQ(tokenizer.decode(ids), word);
  }
  const std::string sentence = "w3 and the w1999 and w77";
  EXPECT_EQ(tokenizer.encode(sentence).size(), 6u);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(sentence)), sentence);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("w3 never and")), "w3 and");
}

TEST(TokenizerTraining, CharacterVocabularyGivesTextBackExactly) {
  const TemporaryFolder folder;
  const std::vector<std::string> texts = {"\u02C8ha\u028As\u02D0", "t\u0283\u02B0u\u0303\u02D0",
                                          "a\u0308 \u00e4",        " x  y ",
                                          "fi\uFB01\u00BD",        "Gr\u00F6\u00DFe"};
  std::string content;
  for (const std::string& text : texts) content += text + "\n";
  const std::string file = folder.write("a.txt", content);
  const auto tokenizer =
      train_tokenizer({.source = {.files = {file}}, .vocab_size = 200, .model_type = "char", .extra_ids = 0})
          .tokenizer;
  for (const std::string& text : texts) EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  EXPECT_EQ(tokenizer.encode("Gr\u00F6\u00DFe").size(), 5u);
  EXPECT_EQ(tokenizer.encode("t\u0283\u02B0").size(), 3u);
}

TEST(TokenizerTraining, SamplesEvenlyAndRepeatably) {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.txt", word_text(1000) + "\n \n");
  TokenizerTraining training{
      .source = {.files = {file}}, .vocab_size = 60, .model_type = "bpe", .max_records = 200};
  const auto trained = train_tokenizer(training);
  EXPECT_EQ(trained.counts.records_used, 200);
  EXPECT_EQ(trained.counts.records_read, 1002);
  EXPECT_EQ(trained.counts.skipped, 2);
  EXPECT_EQ(trained.tokenizer.hash(), train_tokenizer(training).tokenizer.hash());
}

TEST(TokenizerTraining, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.txt", "a b a b\n"), empty = folder.write("empty.txt", "\n\n");
  const auto message = [&](const TokenizerTraining& training) {
    return usage_message([&] { train_tokenizer(training); });
  };
  EXPECT_THAT(message({.source = {.files = {file}}, .vocab_size = 500}),
              ::testing::AllOf(HasSubstr("500"), HasSubstr("--soft-vocab-limit")));
  EXPECT_THAT(message({.source = {.files = {file}}, .vocab_size = 4, .model_type = "bpe"}), HasSubstr("4"));
  EXPECT_THAT(message({.source = {.files = {empty}}, .vocab_size = 10}), HasSubstr("no text"));
  EXPECT_THAT(message({.source = {.files = {file}}, .vocab_size = 10, .model_type = "bp"}),
              HasSubstr("'bp'"));
  EXPECT_THAT(message({.source = {.files = {file}}, .vocab_size = 10, .normalization = "nfd"}),
              HasSubstr("'nfd'"));
}

}  // namespace
}  // namespace elf
