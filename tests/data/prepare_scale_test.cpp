// Preparation of large texts: the same result for any number of threads, shuffled and appended datasets, the
// list of dropped records.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "elf/base/files.h"
#include "elf/data/prepare.h"
#include "elf/text/tokenizer_training.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using test::usage_message;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

// Pieces are single characters: a text comes back from its tokens.
const SentencePieceTokenizer& characters_tokenizer() {
  static const auto tokenizer = [] {
    const TemporaryFolder folder;
    const std::string file = folder.write("a.txt", "text 0123456789 abc\n");
    return train_tokenizer(
               {.source = {.files = {file}}, .vocab_size = 50, .model_type = "char", .extra_ids = 0})
        .tokenizer;
  }();
  return tokenizer;
}

// Lines "text 0", "text 1", ...; every 100th is blank.
std::string numbered_lines(int first, int count) {
  std::string content;
  for (int i = first; i < first + count; ++i)
    content += i % 100 == 99 ? "\n" : "text " + std::to_string(i) + "\n";
  return content;
}

CorpusOptions options_for(const TemporaryFolder& folder, const std::string& content) {
  CorpusOptions options;
  options.source.files = {folder.write("a.txt", content)};
  options.out = folder / "out.h5";
  options.max_length = 16;
  options.threads = 2;
  return options;
}

Texts rows(const fs::path& path) {
  const Dataset data = Dataset::open(path);
  Texts texts;
  for (int64_t row = 0; row < data.info().rows; ++row)
    texts.push_back(characters_tokenizer().decode(data.tokens(row)));
  return texts;
}

PrepareReport prepare(const CorpusOptions& options) {
  return prepare_corpus(options, characters_tokenizer());
}

// Several batches of records, so that threads overtake each other; every file byte by byte.
TEST(PrepareAtScale, TheNumberOfThreadsChangesNothing) {
  const TemporaryFolder folder;
  CorpusOptions options = options_for(folder, numbered_lines(0, 30000));
  options.valid_fraction = 0.1;
  options.valid_out = folder / "valid.h5";
  options.drop_report = folder / "drops.tsv";
  for (const bool pack : {false, true}) {
    for (const bool shuffle : {false, true}) {
      options.pack = pack;
      options.shuffle_seed = shuffle ? std::optional<uint64_t>(5) : std::nullopt;
      Texts first;
      std::string first_report;
      for (const int threads : {1, 2, 5}) {
        options.threads = threads;
        const std::string report = report_text(prepare(options));
        const Texts files = {read_file(options.out), read_file(options.valid_out),
                             read_file(options.drop_report)};
        if (first.empty()) {
          first = files;
          first_report = report;
        }
        EXPECT_TRUE(files == first) << threads << " threads, pack " << pack << ", shuffle " << shuffle;
        EXPECT_EQ(report, first_report);
      }
    }
  }
}

TEST(PrepareAtScale, AShuffleKeepsEveryRecord) {
  const TemporaryFolder folder;
  CorpusOptions options = options_for(folder, numbered_lines(0, 20000));
  prepare(options);
  const Texts in_order = rows(options.out);
  options.shuffle_seed = 1;
  prepare(options);
  const Texts one = rows(options.out);
  options.shuffle_seed = 2;
  prepare(options);
  const Texts two = rows(options.out);
  EXPECT_NE(one, in_order);
  EXPECT_NE(one, two);
  const auto sorted = [](Texts texts) {
    std::sort(texts.begin(), texts.end());
    return texts;
  };
  EXPECT_EQ(sorted(one), sorted(in_order));
  EXPECT_EQ(sorted(two), sorted(in_order));
  // Where record i ends up has nothing to do with i: the rank correlation of n records has deviation
  // 1/sqrt(n).
  double sum = 0;
  const auto n = static_cast<double>(one.size());
  for (size_t i = 0; i < one.size(); ++i)
    sum += (static_cast<double>(i) / n - 0.5) * (std::stod(one[i].substr(5)) / 20000 - 0.5) * 12;
  EXPECT_LT(std::abs(sum / n), 5 / std::sqrt(n));
}

TEST(PrepareAtScale, APairStaysAPairInAShuffle) {
  const TemporaryFolder folder;
  PairsOptions options;
  options.source = {.files = {folder.write("s.txt", numbered_lines(0, 3000))},
                    .format = RecordFormat::kLines};
  options.target =
      RecordSource{.files = {folder.write("t.txt", numbered_lines(0, 3000))}, .format = RecordFormat::kLines};
  options.out = folder / "p.h5";
  options.max_length = 32;
  options.max_input_length = 16;
  options.eos = false;
  options.shuffle_seed = 9;
  prepare_pairs(options, characters_tokenizer());
  const Dataset data = Dataset::open(options.out);
  ASSERT_EQ(data.info().rows, 2970);
  bool moved = false;
  for (int64_t row = 0; row < data.info().rows; ++row) {
    const std::string text = data.source_text(row);
    ASSERT_EQ(data.target_text(row), text);
    const std::vector<int32_t> ids = data.tokens(row);
    const auto middle = ids.begin() + data.cond_length(row);
    EXPECT_EQ(characters_tokenizer().decode(std::vector<int32_t>(ids.begin(), middle)), text);
    EXPECT_EQ(characters_tokenizer().decode(std::vector<int32_t>(middle, ids.end())), text);
    moved |= row > 0 && text < data.source_text(row - 1);
  }
  EXPECT_TRUE(moved);
}

TEST(PrepareAtScale, AppendsToADataset) {
  const TemporaryFolder folder;
  CorpusOptions options = options_for(folder, numbered_lines(0, 3000));
  options.valid_fraction = 0.1;
  options.valid_out = folder / "valid.h5";
  prepare(options);
  const std::string whole = Dataset::open(options.out).info().data_hash,
                    whole_valid = Dataset::open(options.valid_out).info().data_hash;
  options.source.files = {folder.write("b.txt", numbered_lines(0, 1000))};
  prepare(options);
  options.append = true;
  options.source.files = {folder.write("c.txt", numbered_lines(1000, 2000))};
  const PrepareReport report = prepare(options);
  EXPECT_EQ(report.records, 2000);
  EXPECT_GT(report.rows_before, 800);
  EXPECT_EQ(report.train.data_hash, whole);  // as if it had been read in one go
  EXPECT_EQ(report.valid->data_hash, whole_valid);
  EXPECT_THAT(report_text(report), HasSubstr("were there before"));
  options.max_length = 20;
  EXPECT_THAT(usage_message([&] { prepare(options); }),
              AllOf(HasSubstr("cannot be appended to"), HasSubstr("16"), HasSubstr("20")));
  EXPECT_EQ(Dataset::open(options.out).info().data_hash, whole);
}

TEST(PrepareAtScale, ListsEveryDroppedRecord) {
  const TemporaryFolder folder;
  CorpusOptions options = options_for(folder, numbered_lines(0, 5000) + "text 123456789012345\n");
  options.long_text = LongText::kDrop;
  options.drop_report = folder / "drops.tsv";
  EXPECT_EQ(prepare(options).blank, 50);
  std::string expected;
  for (int line = 100; line <= 5000; line += 100)
    expected += options.source.files[0] + ":" + std::to_string(line) + "\tblank\n";
  expected += options.source.files[0] + ":5001\ttoo long\n";
  EXPECT_EQ(read_file(options.drop_report), expected);
  options.drop_report = options.out;
  EXPECT_THAT(usage_message([&] { prepare(options); }), HasSubstr("is an input as well"));
}

// A bad line far down is told although other threads are at work elsewhere, and nothing is left.
TEST(PrepareAtScale, ABadLineEndsAllThreads) {
  const TemporaryFolder folder;
  CorpusOptions options =
      options_for(folder, numbered_lines(0, 20000) + "text \xFF\n" + numbered_lines(0, 20000));
  for (const int threads : {1, 2, 5}) {
    options.threads = threads;
    EXPECT_THAT(usage_message([&] { prepare(options); }), HasSubstr("a.txt:20001"));
  }
  for (const auto& entry : fs::directory_iterator(folder.path())) EXPECT_EQ(entry.path().filename(), "a.txt");
}

}  // namespace
}  // namespace elf
