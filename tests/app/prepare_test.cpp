// elf-prepare as a program: exit codes, what is printed, and that a killed run leaves nothing under the final
// name (field case 45).
#include <signal.h>

#include <nlohmann/json.hpp>
#include <set>

#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/data/dataset.h"
#include "elf/text/sentencepiece_tokenizer.h"
#include "support/command.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using test::Outcome;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Runs a shell command line in `folder`.
Outcome shell(const TemporaryFolder& folder, const std::string& command) {
  return test::run(folder.path(), command);
}

// The words w0 ... w99 in lines of five, 1300 different ones; from 100 lines on every word occurs.
void write_words(const TemporaryFolder& folder, int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) {
    for (int k = 0; k < 5; ++k)
      text += (k > 0 ? " w" : "w") + std::to_string((i * 7 + k * (i % 13 + 1)) % 100);
    text += "\n";
  }
  folder.write("a.txt", text);
}

void train_words(const TemporaryFolder& folder) {
  const Outcome trained =
      shell(folder,
            "elf-prepare tokenizer --input a.txt --vocab-size 200 --model-type word --extra-ids 0 --out tok");
  ASSERT_EQ(trained.code, 0) << trained.err;
}

TEST(ElfPrepare, MakesTokenizerAndDatasets) {
  const TemporaryFolder folder;
  write_words(folder, 2000);
  train_words(folder);
  const auto tokenizer = SentencePieceTokenizer::load(folder / "tok");
  EXPECT_EQ(tokenizer.size(), 103);

  const Outcome corpus = shell(folder,
                               "elf-prepare corpus --input a.txt --tokenizer tok --max-length 8 --out tr.h5 "
                               "--valid-fraction 0.1 --valid-out va.h5 --json");
  ASSERT_EQ(corpus.code, 0) << corpus.err;
  const auto report = parse_json_or_throw(corpus.out);
  EXPECT_EQ(report["records"], 2000);
  EXPECT_EQ(report["columns"][0]["unknown_rate"], 0.0);
  const Dataset train = Dataset::open(folder / "tr.h5");
  EXPECT_EQ(train.info().rows, report["train"]["rows"].get<int64_t>());
  train.require_tokenizer(tokenizer.hash(), tokenizer.size());

  const Outcome piped = shell(
      folder, "gzip -c a.txt | elf-prepare corpus --input - --tokenizer tok --max-length 8 --out in.h5");
  ASSERT_EQ(piped.code, 0) << piped.err;
  EXPECT_EQ(Dataset::open(folder / "in.h5").info().rows, 2000);

  const Outcome pairs = shell(folder,
                              "elf-prepare pairs --source a.txt --target a.txt --tokenizer tok/spiece.model "
                              "--max-input-length 8 --max-length 16 --out p.h5");
  ASSERT_EQ(pairs.code, 0) << pairs.err;
  EXPECT_THAT(pairs.out, HasSubstr("records read 2000, kept 2000"));
  EXPECT_EQ(Dataset::open(folder / "p.h5").cond_length(0), 5);
}

TEST(ElfPrepare, EndsWithTwoAndOneMessageOnBadInput) {
  const TemporaryFolder folder;
  write_words(folder, 100);
  train_words(folder);
  folder.write("short.txt", "w1\n");
  folder.write("lfs.model", "version https://git-lfs.github.com/spec/v1\n");
  const std::string data = " --max-length 8 --out out.h5", tok = " --tokenizer tok",
                    corpus = "elf-prepare corpus --input a.txt",
                    pairs = "elf-prepare pairs --source a.txt --max-input-length 4";
  const std::pair<std::string, std::string> cases[] = {
      {"elf-prepare corpus --input none.txt" + tok + data, "none.txt: no such file"},
      {corpus + " --tokenizer none" + data, "none"},
      {corpus + " --tokenizer lfs.model" + data, "Git LFS pointer"},
      {corpus + tok + " --long shorten" + data, "'shorten'"},
      {corpus + tok + " --lenght 3" + data, "--lenght"},
      {corpus + tok + " --max-length 0 --out out.h5", "--max-length is 0"},
      {corpus + tok + " --invalid-utf8 ignore" + data, "'ignore'"},
      {pairs + " --target short.txt" + tok + data, "a.txt has 100 records, short.txt has 1"},
      {pairs + tok + data, "--target"},
      {"elf-prepare tokenizer --input a.txt --vocab-size 5000 --out big", "5000"},
      {"elf-prepare", "a command is missing"},
  };
  for (const auto& [command, expected] : cases) {
    const Outcome outcome = shell(folder, command);
    EXPECT_EQ(outcome.code, 2) << command << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(expected)) << command;
    EXPECT_EQ(outcome.out, "") << command;
  }
  EXPECT_FALSE(fs::exists(folder / "out.h5"));
  EXPECT_FALSE(fs::exists(folder / "big"));
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
  const Outcome help = shell(folder, "elf-prepare pairs --help");
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("--source"), HasSubstr("Examples")));
}

TEST(ElfPrepare, LeavesNothingWhenKilledHalfWay) {
  const TemporaryFolder folder;
  write_words(folder, 2000);
  train_words(folder);
  const std::string command = "elf-prepare corpus --input a.txt --tokenizer tok --max-length 8 --out out.h5";
  EXPECT_EQ(shell(folder, test::killed_at_write(3) + command).code, 128 + SIGKILL);
  EXPECT_FALSE(fs::exists(folder / "out.h5"));
  const Outcome again = shell(folder, command);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("left over from an interrupted run"));
  EXPECT_EQ(Dataset::open(folder / "out.h5").info().rows, 2000);
}

// Killed at every change of a file in turn, shuffling and closing included: under the final name there is
// never anything but a whole dataset.
TEST(ElfPrepare, ShowsNoPartOfADatasetWheneverItIsKilled) {
  const TemporaryFolder folder;
  write_words(folder, 1300);
  train_words(folder);
  int changes = 0;
  Outcome outcome;
  do {
    outcome =
        shell(folder, test::killed_at_write(++changes) +
                          "elf-prepare corpus --input a.txt --tokenizer tok --max-length 8 --out out.h5 "
                          "--shuffle-seed 1");
    ASSERT_THAT(outcome.code, ::testing::AnyOf(0, 128 + SIGKILL)) << outcome.err;
    if (!fs::exists(folder / "out.h5")) continue;
    EXPECT_EQ(Dataset::open(folder / "out.h5").info().rows, 1300) << "change " << changes;
    fs::remove(folder / "out.h5");
  } while (outcome.code != 0);
  EXPECT_GT(changes, 10);
}

TEST(ElfPrepare, ReadsPatternsAndTables) {
  const TemporaryFolder folder;
  write_words(folder, 500);
  train_words(folder);
  const Outcome split =
      shell(folder,
            "split -n l/3 -d a.txt part- && gzip part-01 && elf-prepare corpus --input 'part-*' "
            "--tokenizer tok --max-length 8 --out parts.h5 && "
            "elf-prepare corpus --input a.txt --tokenizer tok --max-length 8 --out whole.h5");
  ASSERT_EQ(split.code, 0) << split.err;
  EXPECT_EQ(Dataset::open(folder / "parts.h5").info().data_hash,
            Dataset::open(folder / "whole.h5").info().data_hash);
  const Outcome table =
      shell(folder,
            "cat -n a.txt > n.tsv && elf-prepare corpus --input n.tsv --tsv-column 2 --tokenizer tok "
            "--max-length 8 --out table.h5 && elf-prepare pairs --tsv n.tsv --columns 2 2 --tokenizer "
            "tok --max-input-length 8 --max-length 16 --out pairs.h5");
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(Dataset::open(folder / "table.h5").info().data_hash,
            Dataset::open(folder / "whole.h5").info().data_hash);
  EXPECT_EQ(Dataset::open(folder / "pairs.h5").info().rows, 500);
  const Outcome none =
      shell(folder, "elf-prepare corpus --input 'no-*' --tokenizer tok --max-length 8 --out x.h5");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("no-*: no file matches"));
}

TEST(ElfPrepare, FollowsARecipe) {
  const TemporaryFolder folder;
  write_words(folder, 500);
  folder.write("recipe.yaml", R"(
steps:
  - tokenizer: {input: a.txt, vocab-size: 200, model-type: word, extra-ids: 0, out: tok}
  - corpus:
      input: [a.txt, a.txt]
      tokenizer: tok
      max-length: 8
      eos: false
      out: a.h5
)");
  const Outcome made = shell(folder, "elf-prepare recipe recipe.yaml");
  ASSERT_EQ(made.code, 0) << made.err;
  const Dataset data = Dataset::open(folder / "a.h5");
  EXPECT_EQ(data.info().rows, 1000);
  EXPECT_EQ(data.info().longest_row, 5);
  const Outcome again = shell(folder, "elf-prepare recipe recipe.yaml");
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, AllOf(HasSubstr("a.h5 is there already"), HasSubstr("tok is there already")));
}

TEST(ElfPrepare, NumbersAreDecimalAndCommandsAreFoundBehindOptions) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "own");
  const auto refusal = [&](const std::string& arguments) {
    const Outcome outcome = shell(folder, "elf-prepare " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    return outcome.err;
  };
  const std::string corpus = "corpus --input a.txt --tokenizer tok --out a.h5 --max-length ";
  for (const char* number : {"064", "0x10", "abc", "6.5", "''", "8x"})
    EXPECT_THAT(refusal(corpus + number), HasSubstr("--max-length: expected an integer, found '")) << number;
  EXPECT_THAT(refusal(corpus + "99999999999999999999"),
              HasSubstr("--max-length: found 99999999999999999999"));
  EXPECT_THAT(refusal(corpus + "8 --shuffle-seed -1"),
              HasSubstr("--shuffle-seed: expected an integer from 0 on"));
  EXPECT_THAT(refusal(corpus + "8 --valid-fraction a"),
              HasSubstr("--valid-fraction: expected a number, found 'a'"));
  EXPECT_THAT(refusal("--threads 2 corpsu --input a.txt"),
              AllOf(HasSubstr("unknown command 'corpsu'"), HasSubstr("'corpus'")));
  EXPECT_THAT(refusal("--input a.txt corpus"),
              HasSubstr("option '--input' belongs behind the command: elf-prepare corpus --input"));
  EXPECT_THAT(refusal("corpus --input a.txt --tokenizer tok --max-length 8 --out ''"),
              HasSubstr("--out: found an empty name"));
  folder.write("own/spiece.model", "x");
  EXPECT_THAT(refusal("corpus --input a.txt --tokenizer own --max-length 8 --out a.h5 --valid-fraction 0.1 "
                      "--valid-out own/spiece.model"),
              HasSubstr("is a part of an input (own)"));
  EXPECT_THAT(refusal("corpus --frobnicate"), ::testing::Not(HasSubstr("nearest")));
}

TEST(ElfPrepare, ARecipesMistakeIsNamedWithItsLine) {
  const TemporaryFolder folder;
  const std::string corpus = "corpus: {input: a.txt, tokenizer: tok, max-length: 8, out: b.h5";
  const auto refusal = [&](const std::string& step) {
    folder.write("wrong.yaml", "steps:\n  - " + step + "\n");
    const Outcome outcome = shell(folder, "elf-prepare recipe wrong.yaml");
    EXPECT_EQ(outcome.code, 2) << step;
    return outcome.err;
  };
  EXPECT_THAT(refusal(corpus + ", lenght: 3}"), HasSubstr("wrong.yaml:2: corpus: unknown option '--lenght'"));
  EXPECT_THAT(refusal("korpus: {input: a.txt}"), HasSubstr("wrong.yaml:2: korpus: unknown command 'korpus'"));
  EXPECT_THAT(refusal(corpus + ", help: true}"), HasSubstr("--help and --version are for the command line"));
  EXPECT_THAT(refusal("corpus: {input: a.txt, tokenizer: tok, max-length: 8, out: ''}"),
              HasSubstr("wrong.yaml:2: corpus: --out: found an empty name"));
  EXPECT_THAT(refusal(corpus + ", max-records: -4}"),
              HasSubstr("--max-records: expected zero or a positive number, found '-4'"));
  EXPECT_THAT(refusal(corpus + ", max-length: 9}"), HasSubstr("wrong.yaml:2: max-length stands here twice"));
  EXPECT_THAT(refusal(corpus + ", shuffle-seed: 010}"),
              HasSubstr("--shuffle-seed: expected an integer from 0 on, found '010'"));
  // A later step's mistake is told before the first one works.
  folder.write("a.txt", "one\n");
  EXPECT_THAT(
      refusal(
          "tokenizer: {input: a.txt, vocab-size: 9, model-type: word, out: tok}\n  - table: {dtaa: b.h5}"),
      HasSubstr("wrong.yaml:3: table: unknown option '--dtaa'"));
  EXPECT_FALSE(fs::exists(folder / "tok"));
}

// The recipes of the published data are whole: every step parses, and the first thing missing is a file.
TEST(ElfPrepare, RecipesOfThePublishedDataParse) {
  const TemporaryFolder folder;
  for (const char* name : {"openwebtext", "wmt14-de-en", "xsum"}) {
    const Outcome outcome =
        shell(folder, std::string("elf-prepare recipe " ELF_TEST_DIR "/../configs/data/") + name + ".yaml");
    EXPECT_EQ(outcome.code, 2) << name;
    EXPECT_THAT(outcome.err, ::testing::AnyOf(HasSubstr("no such file"), HasSubstr("no file matches")))
        << name;
  }
}

// Small archives of the publishers' kind, through scripts/corpora.py and into datasets.
TEST(ElfPrepare, TakesThePublishersArchives) {
  const TemporaryFolder folder;
  write_words(folder, 500);
  train_words(folder);
  const std::string corpora = "C='" ELF_TEST_DIR "/../scripts/corpora.py'; ";
  const Outcome owt = shell(
      folder,
      corpora +
          "mkdir o && printf 'w1 w2\n\nw3\n' > 1.txt && printf 'w4\n' > 2.txt && printf ' \n' > 3.txt "
          "&& python3 -m tarfile -c a.txz 1.txt && python3 -m tarfile -c b.txz 2.txt 3.txt "  // tar wants xz
          "&& mv a.txz o/a_data.xz && mv b.txz o/b_data.xz && tar cf owt.tar o && "
          "python3 $C openwebtext owt.tar | elf-prepare corpus --input - --field text --tokenizer tok "
          "--max-length 8 --out owt.h5");
  ASSERT_EQ(owt.code, 0) << owt.err;
  const Dataset documents = Dataset::open(folder / "owt.h5");
  const auto tokenizer = SentencePieceTokenizer::load(folder / "tok");
  ASSERT_EQ(documents.info().rows, 2);
  const std::set<std::string> texts = {tokenizer.decode(documents.tokens(0)),
                                       tokenizer.decode(documents.tokens(1))};
  EXPECT_EQ(texts, (std::set<std::string>{"w1 w2 w3", "w4"}));

  const Outcome xsum = shell(
      folder,
      corpora +
          "mkdir bbc && printf '[SN]URL[SN]\nx\n\n[SN]TITLE[SN]\nw9\n\n[SN]FIRST-SENTENCE[SN]\nw5\n\n"
          "[SN]RESTBODY[SN]\nw6\nw7\n' > bbc/12.summary && tar czf x.tgz bbc && "
          "echo '{\"train\": [\"12\"], \"test\": [\"13\"]}' > split.json && python3 $C xsum x.tgz "
          "split.json > x.jsonl && "
          "elf-prepare pairs --jsonl x.jsonl --source-field document --target-field summary --tokenizer tok "
          "--max-input-length 4 --max-length 8 --out x.h5");
  ASSERT_EQ(xsum.code, 0) << xsum.err;
  const Dataset pairs = Dataset::open(folder / "x.h5");
  EXPECT_EQ(pairs.source_text(0), "w6\nw7");
  EXPECT_EQ(pairs.target_text(0), "w5");
  const Outcome missing = shell(folder, corpora + "python3 $C xsum x.tgz split.json --part test");
  EXPECT_EQ(missing.code, 2);
  EXPECT_THAT(missing.err, HasSubstr("13"));

  const Outcome sgm =
      shell(folder, corpora +
                        "printf '<doc><seg id=\"1\"> A &amp; B </seg>\n<seg id=\"2\">C</seg>' > a.sgm && "
                        "python3 $C sgm a.sgm");
  EXPECT_EQ(sgm.out, "A & B\nC\n");
}

TEST(ElfPrepare, MeasuresHowFastBatchesCome) {
  const TemporaryFolder folder;
  write_words(folder, 500);
  train_words(folder);
  const Outcome made =
      shell(folder, "elf-prepare corpus --input a.txt --tokenizer tok --max-length 8 --out a.h5");
  ASSERT_EQ(made.code, 0) << made.err;
  for (const char* memory : {"0", "100"}) {
    const Outcome outcome = shell(
        folder,
        std::string("elf-prepare benchmark --data a.h5 --batch 32 --seconds 0.1 --json --memory ") + memory);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto result = parse_json_or_throw(outcome.out);
    EXPECT_GT(result["rows_per_second"], 0.0);
    EXPECT_EQ(result["length"]["median"], 6);  // five words and an EOS
    EXPECT_EQ(result["length"]["p99"], 6);
    EXPECT_EQ(result["batch_length"], 8);
  }
}

}  // namespace
}  // namespace elf
