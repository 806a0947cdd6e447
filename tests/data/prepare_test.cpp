// Text to datasets: field cases 5, 47, 48, 51 and 52, and every way of cutting and splitting.
#include "elf/data/prepare.h"

#include <chrono>
#include <set>

#include "elf/base/sanitizers.h"
#include "elf/text/tokenizer_training.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using test::TemporaryFolder;
using test::usage_message;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

const SentencePieceTokenizer& golden_tokenizer() {
  static const auto tokenizer = SentencePieceTokenizer::load(ELF_TEST_DIR "/golden/tokenizer/spiece.model");
  return tokenizer;
}

// Characters a..j are ids 3.. in order of their frequency in "abcdefghij..."; what matters is one token a
// character.
const SentencePieceTokenizer& letters() {
  static const auto tokenizer = [] {
    const TemporaryFolder folder;
    const std::string file =
        folder.write("a.txt", "abcdefghij abcdefghi abcdefgh abcdefg abcdef abcde abcd abc ab a\n");
    return train_tokenizer(
               {.source = {.files = {file}}, .vocab_size = 50, .model_type = "char", .extra_ids = 0})
        .tokenizer;
  }();
  return tokenizer;
}

std::vector<std::string> row_texts(const fs::path& path, const SentencePieceTokenizer& tokenizer) {
  const Dataset data = Dataset::open(path);
  std::vector<std::string> texts;
  for (int64_t row = 0; row < data.info().rows; ++row) {
    std::string text;
    for (const int32_t id : data.tokens(row))
      text += id == tokenizer.eos_id() ? "|" : tokenizer.decode(Ids{id});
    texts.push_back(text);
  }
  return texts;
}

CorpusOptions corpus(const TemporaryFolder& folder, const std::string& file, int64_t max_length) {
  CorpusOptions options;
  options.out = folder / "out.h5";
  options.max_length = max_length;
  options.source.files = {file};
  return options;
}

PairsOptions pairs(const TemporaryFolder& folder, const std::string& source, const std::string& target) {
  PairsOptions options;
  options.out = folder / "out.h5";
  options.max_length = 64;
  options.max_input_length = 32;
  options.eos = false;
  options.source.files = {source};
  options.target = RecordSource{.files = {target}};
  return options;
}

TEST(PrepareCorpus, CutsLongTextsAsAsked) {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.txt", "abc\nabcdefghij\n\nabcd\n");
  CorpusOptions options = corpus(folder, file, 4);
  const auto rows = [&] {
    const PrepareReport report = prepare_corpus(options, letters());
    EXPECT_EQ(report.records, 4);
    EXPECT_EQ(report.blank, 1);
    return row_texts(options.out, letters());
  };
  options.long_text = LongText::kSplit;
  EXPECT_THAT(rows(), ElementsAre("abc|", "abcd", "efgh", "ij|", "abcd"));  // no row of an EOS alone
  options.long_text = LongText::kTruncate;
  EXPECT_THAT(rows(), ElementsAre("abc|", "abcd", "abcd"));
  options.long_text = LongText::kDrop;
  EXPECT_THAT(rows(), ElementsAre("abc|"));
  options.eos = false;
  EXPECT_THAT(rows(), ElementsAre("abc", "abcd"));
  options.eos = options.pack = true;
  EXPECT_THAT(rows(), ElementsAre("abc|", "abcd", "efgh", "ij|a", "bcd|"));
  options.eos = false;
  EXPECT_THAT(usage_message(rows), HasSubstr("--no-eos"));
}

TEST(PrepareCorpus, CountsEverything) {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.txt", "abc\nabcdefghij\n \nabcd\n\xFF\n");
  CorpusOptions options = corpus(folder, file, 8);
  options.long_text = LongText::kDrop;
  options.source.bad_text = BadText::kDrop;
  const PrepareReport report = prepare_corpus(options, letters());
  EXPECT_EQ(report.records, 5);
  EXPECT_EQ(report.kept, 2);
  EXPECT_EQ(report.too_long, 1);
  EXPECT_EQ(report.blank, 1);
  EXPECT_EQ(report.bad_text, 1);
  EXPECT_THAT(report.dropped,
              ElementsAre(std::pair(file + ":2", "too long"s), std::pair(file + ":3", "blank"s),
                          std::pair(file + ":5", "invalid UTF-8 or NUL"s)));
  EXPECT_EQ(report.train.rows, 2);
  EXPECT_EQ(report.train.tokens, 9);
  EXPECT_EQ(report.train.longest_row, 5);
  EXPECT_EQ(report.columns.at(0).longest, 10);
  EXPECT_EQ(report.columns.at(0).round_trips, 3);
  const auto json = report_json(report);
  EXPECT_EQ(json["dropped"]["blank"], 1);
  EXPECT_EQ(json["train"]["rows"], 2);
  EXPECT_THAT(report_text(report), AllOf(HasSubstr("records read 5, kept 2"), HasSubstr("unknown 0.0 %")));
}

TEST(PrepareCorpus, HoldsOutByTheText) {
  const TemporaryFolder folder;
  std::string content;
  for (int i = 0; i < 20000; ++i)
    content += "text " + std::to_string(i % 5000) + "\n";  // each text four times
  const std::string file = folder.write("a.txt", content);
  const auto tokenizer =
      train_tokenizer({.source = {.files = {file}}, .vocab_size = 50, .model_type = "char"}).tokenizer;
  CorpusOptions options = corpus(folder, file, 16);
  options.valid_fraction = 0.1;
  options.valid_out = folder / "valid.h5";
  options.threads = 1;
  const PrepareReport one = prepare_corpus(options, tokenizer);
  const auto train = row_texts(options.out, tokenizer), valid = row_texts(options.valid_out, tokenizer);
  EXPECT_EQ(train.size() + valid.size(), 20000u);
  EXPECT_NEAR(static_cast<double>(valid.size()), 2000,
              5 * 4 * std::sqrt(5000 * 0.09));  // five standard deviations
  const std::set<std::string> held_out(valid.begin(), valid.end());
  EXPECT_EQ(held_out.size() * 4, valid.size());
  for (const std::string& text : train) ASSERT_EQ(held_out.count(text), 0u) << text;
  options.threads = 3;
  const PrepareReport three = prepare_corpus(options, tokenizer);
  EXPECT_EQ(one.train.data_hash, three.train.data_hash);
  EXPECT_EQ(one.valid->data_hash, three.valid->data_hash);
  EXPECT_EQ(report_text(one), report_text(three));
  options.max_records = 100;
  EXPECT_EQ(prepare_corpus(options, tokenizer).records, 100);
  options.valid_out.clear();
  EXPECT_THAT(usage_message([&] { prepare_corpus(options, tokenizer); }), HasSubstr("--valid-out"));
}

TEST(PrepareCorpus, RefusesATokenizerOfAnotherScript) {
  const TemporaryFolder folder;
  std::string chinese, english;
  for (int i = 0; i < 10; ++i) {
    chinese += "\u4eca\u5929\u5929\u6c14\n";
    english += "the city council measured the rain\n";
  }
  CorpusOptions options = corpus(folder, folder.write("zh.txt", chinese), 64);
  EXPECT_THAT(
      usage_message([&] { prepare_corpus(options, golden_tokenizer()); }),
      AllOf(HasSubstr("'text'"), HasSubstr("50.0 %"), HasSubstr("'\u5929' (20)"), HasSubstr("--allow-unk")));
  EXPECT_FALSE(fs::exists(options.out));
  options.allow_unknown = true;
  const PrepareReport allowed = prepare_corpus(options, golden_tokenizer());
  EXPECT_DOUBLE_EQ(allowed.columns.at(0).unknown_rate(), 0.5);
  EXPECT_THAT(allowed.columns.at(0).uncovered,
              ElementsAre(std::pair("\u5929"s, 20), std::pair("\u4eca"s, 10), std::pair("\u6c14"s, 10)));
  EXPECT_TRUE(fs::exists(options.out));
  options = corpus(folder, folder.write("en.txt", english), 64);
  EXPECT_THAT(report_text(prepare_corpus(options, golden_tokenizer())), HasSubstr("unknown 0.0 %"));
}

// Six ways to write a blank give the same tokens; only the plain one comes back.
TEST(PrepareCorpus, ReportsWhatDoesNotComeBack) {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("a.txt",
                   "ferry station\nferry  station\nferry\tstation\nferry\u00A0station\nferry\u2028station\n"
                   "\uFF46\uFF45\uFF52\uFF52\uFF59 station\n");
  const CorpusOptions options = corpus(folder, file, 64);
  const PrepareReport report = prepare_corpus(options, golden_tokenizer());
  EXPECT_EQ(report.columns.at(0).texts, 6);
  EXPECT_EQ(report.columns.at(0).round_trips, 1);
  EXPECT_EQ(report_json(report)["columns"][0]["round_trip_share"], 1.0 / 6);
  const Dataset data = Dataset::open(options.out);
  for (int64_t row = 1; row < 6; ++row) EXPECT_EQ(data.tokens(row), data.tokens(0));
}

TEST(PrepareCorpus, NamesBadBytesAndTakesLongLines) {
  const TemporaryFolder folder;
  const std::string long_line(2'000'000, 'a');
  const std::string good = "abc\n" + long_line + "\n",
                    bad = "abc\nab \xFF cd\n\0\n"s + long_line + "\n\xED\xB2\x80\n"s;
  CorpusOptions options = corpus(folder, folder.write("bad.txt", bad), 1024);
  EXPECT_THAT(usage_message([&] { prepare_corpus(options, letters()); }),
              AllOf(HasSubstr("bad.txt:2"), HasSubstr("byte 3")));
  EXPECT_FALSE(fs::exists(options.out));
  options.source.bad_text = BadText::kDrop;
  options.long_text = LongText::kTruncate;
  const auto start = std::chrono::steady_clock::now();
  const PrepareReport report = prepare_corpus(options, letters());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(1));  // quadratic would take hours
  EXPECT_EQ(report.bad_text, 3);
  EXPECT_EQ(report.truncated, 1);
  EXPECT_EQ(report.kept, 2);
  options.source = {.files = {folder.write("good.txt", good)}};
  EXPECT_EQ(prepare_corpus(options, letters()).train.data_hash, report.train.data_hash);
  const auto golden_start = std::chrono::steady_clock::now();  // a unigram model on the same line
  EXPECT_EQ(prepare_corpus(options, golden_tokenizer()).truncated, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - golden_start, std::chrono::minutes(1));
}

TEST(PrepareCorpus, ReadsWithAndWithoutAByteOrderMarkAlike) {
  const TemporaryFolder folder;
  const std::string text = "abc\nbcd\ncde\n";
  const auto hash = [&](const std::string& content) {
    return prepare_corpus(corpus(folder, folder.write("a.txt", content), 8), letters()).train.data_hash;
  };
  EXPECT_EQ(hash(text), hash("\xEF\xBB\xBF" + text));
  EXPECT_NE(hash(text), hash("a" + text));
}

TEST(PreparePairs, KeepsPairsAlignedAndCountsDrops) {
  const TemporaryFolder folder;
  const std::string source = folder.write("s.txt", "a\nb\nc\nd\n"),
                    target = folder.write("t.txt", "j\n\nhi\ng\n");
  const PairsOptions options = pairs(folder, source, target);
  const PrepareReport report = prepare_pairs(options, letters());
  EXPECT_EQ(report.kept, 3);
  EXPECT_EQ(report.blank, 1);
  EXPECT_THAT(report.dropped, ElementsAre(std::pair(source + ":2", "an empty side"s)));
  EXPECT_THAT(row_texts(options.out, letters()), ElementsAre("aj", "chi", "dg"));
  const Dataset data = Dataset::open(options.out);
  EXPECT_EQ(data.cond_length(1), 1);
  EXPECT_EQ(data.source_text(1), "c");
  EXPECT_EQ(data.target_text(1), "hi");
}

TEST(PreparePairs, RefusesUnequalCounts) {
  const TemporaryFolder folder;
  const std::string four = folder.write("four.txt", "a\nb\nc\nd\n"),
                    five = folder.write("five.txt", "a\nb\nc\nd\ne\n");
  const auto expected = AllOf(HasSubstr("four.txt has 4"), HasSubstr("five.txt has 5"));
  EXPECT_THAT(usage_message([&] { prepare_pairs(pairs(folder, four, five), letters()); }), expected);
  EXPECT_THAT(usage_message([&] { prepare_pairs(pairs(folder, five, four), letters()); }), expected);
  EXPECT_FALSE(fs::exists(folder / "out.h5"));
}

TEST(PreparePairs, ReadsTsvAndJson) {
  const TemporaryFolder folder;
  PairsOptions options = pairs(folder, "", "");
  options.target.reset();
  options.source = {
      .files = {folder.write("a.tsv", "a\tb\nc\td\n")}, .format = RecordFormat::kTsv, .columns = 2};
  prepare_pairs(options, letters());
  EXPECT_THAT(row_texts(options.out, letters()), ElementsAre("ab", "cd"));
  options.source.files = {folder.write("bad.tsv", "a\tb\nc\na\tb\tc\n")};
  EXPECT_THAT(usage_message([&] { prepare_pairs(options, letters()); }), HasSubstr("bad.tsv:2"));
  options.source = {.files = {folder.write("a.jsonl", R"({"x": {"de": "a"}, "en": "b\ncd"})")},
                    .fields = {"x.de", "en"}};
  const PrepareReport report = prepare_pairs(options, letters());
  EXPECT_EQ(report.line_breaks, 1);
  EXPECT_THAT(row_texts(options.out, letters()), ElementsAre("ab cd"));
  EXPECT_EQ(Dataset::open(options.out).target_text(0), "b\ncd");  // raw, for scoring
}

TEST(PreparePairs, KeepsToBothLengths) {
  const TemporaryFolder folder;
  PairsOptions options =
      pairs(folder, folder.write("s.txt", "abcdef\na\nab\n"), folder.write("t.txt", "a\nabcdef\nab\n"));
  options.max_input_length = 3;
  options.max_length = 5;
  EXPECT_EQ(prepare_pairs(options, letters()).truncated, 2);
  EXPECT_THAT(row_texts(options.out, letters()), ElementsAre("abca", "aab", "abab"));
  options.eos = true;
  EXPECT_EQ(prepare_pairs(options, letters()).truncated, 3);
  EXPECT_THAT(row_texts(options.out, letters()), ElementsAre("abca|", "aab", "abab"));
  options.eos = false;
  options.long_text = LongText::kDrop;
  EXPECT_EQ(prepare_pairs(options, letters()).too_long, 2);
  options.max_input_length = 5;
  EXPECT_THAT(usage_message([&] { prepare_pairs(options, letters()); }),
              AllOf(HasSubstr("--max-input-length"), HasSubstr("5")));
}

TEST(PreparePairs, HoldsOutBySourceOrTarget) {
  const TemporaryFolder folder;
  std::string source, target;
  for (int i = 0; i < 1000; ++i) {
    source += std::string(1 + i % 10, 'a') + std::string(1 + i / 100, 'b') + "\n";
    target += std::string(1 + i % 7, 'c') + std::string(1 + i % 11, 'd') + "\n";
  }
  PairsOptions options = pairs(folder, folder.write("s.txt", source), folder.write("t.txt", target));
  options.valid_fraction = 0.3;
  options.valid_out = folder / "valid.h5";
  for (const bool by_target : {false, true}) {
    options.split_by_target = by_target;
    prepare_pairs(options, letters());
    const auto texts = [&](const fs::path& path) {
      const Dataset data = Dataset::open(path);
      std::set<std::string> result;
      for (int64_t row = 0; row < data.info().rows; ++row)
        result.insert(by_target ? data.target_text(row) : data.source_text(row));
      return result;
    };
    const auto train = texts(options.out), valid = texts(options.valid_out);
    for (const std::string& text : valid) EXPECT_EQ(train.count(text), 0u) << text;
    EXPECT_FALSE(valid.empty());
  }
}

}  // namespace
}  // namespace elf
