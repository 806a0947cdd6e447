// elf-prepare as a program: exit codes, what is printed, and that a killed run leaves nothing under the final
// name (field case 45).
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "elf/base/files.h"
#include "elf/data/dataset.h"
#include "elf/text/sentencepiece_tokenizer.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kTool = ELF_TOOL_DIR "/elf-prepare";

struct Outcome {
  int code = -1;
  std::string out, err;
};

// Runs a shell command line with $P = the program, in `folder`.
Outcome shell(const TemporaryFolder& folder, const std::string& command) {
  const std::string line =
      "cd '" + folder.path().string() + "' && P='" + kTool + "' && { " + command + "; } > .out 2> .err";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder / ".out"),
          read_file(folder / ".err")};
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
      shell(folder, "$P tokenizer --input a.txt --vocab-size 200 --model-type word --extra-ids 0 --out tok");
  ASSERT_EQ(trained.code, 0) << trained.err;
}

TEST(ElfPrepare, MakesTokenizerAndDatasets) {
  const TemporaryFolder folder;
  write_words(folder, 2000);
  train_words(folder);
  const auto tokenizer = SentencePieceTokenizer::load(folder / "tok");
  EXPECT_EQ(tokenizer.size(), 103);

  const Outcome corpus = shell(folder,
                               "$P corpus --input a.txt --tokenizer tok --max-length 8 --out tr.h5 "
                               "--valid-fraction 0.1 --valid-out va.h5 --json");
  ASSERT_EQ(corpus.code, 0) << corpus.err;
  const auto report = nlohmann::json::parse(corpus.out);
  EXPECT_EQ(report["records"], 2000);
  EXPECT_EQ(report["columns"][0]["unknown_rate"], 0.0);
  const Dataset train = Dataset::open(folder / "tr.h5");
  EXPECT_EQ(train.info().rows, report["train"]["rows"].get<int64_t>());
  train.require_tokenizer(tokenizer.hash(), tokenizer.size());

  const Outcome piped =
      shell(folder, "gzip -c a.txt | $P corpus --input - --tokenizer tok --max-length 8 --out in.h5");
  ASSERT_EQ(piped.code, 0) << piped.err;
  EXPECT_EQ(Dataset::open(folder / "in.h5").info().rows, 2000);

  const Outcome pairs = shell(folder,
                              "$P pairs --source a.txt --target a.txt --tokenizer tok/spiece.model "
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
                    corpus = "$P corpus --input a.txt",
                    pairs = "$P pairs --source a.txt --max-input-length 4";
  const std::pair<std::string, std::string> cases[] = {
      {"$P corpus --input none.txt" + tok + data, "none.txt: no such file"},
      {corpus + " --tokenizer none" + data, "none"},
      {corpus + " --tokenizer lfs.model" + data, "Git LFS pointer"},
      {corpus + tok + " --long shorten" + data, "'shorten'"},
      {corpus + tok + " --lenght 3" + data, "--lenght"},
      {corpus + tok + " --max-length 0 --out out.h5", "--max-length is 0"},
      {corpus + tok + " --invalid-utf8 ignore" + data, "'ignore'"},
      {pairs + " --target short.txt" + tok + data, "a.txt has 100 records, short.txt has 1"},
      {pairs + tok + data, "--target"},
      {"$P tokenizer --input a.txt --vocab-size 5000 --out big", "5000"},
      {"$P", "a command is missing"},
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
  const Outcome help = shell(folder, "$P pairs --help");
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("--source"), HasSubstr("Examples")));
}

// A temporary dataset that holds more than its first bytes.
bool writing(const TemporaryFolder& folder) {
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    if (entry.path().extension() == ".tmp" && fs::file_size(entry.path()) > 4096) return true;
  }
  return false;
}

TEST(ElfPrepare, LeavesNothingWhenKilledHalfWay) {
  const TemporaryFolder folder;
  write_words(folder, 20000);
  train_words(folder);
  // The input comes from a pipe that stays open, so the program is surely half way when it is killed.
  ::signal(SIGPIPE, SIG_IGN);
  const std::string input = (folder / "pipe").string(), tokenizer = (folder / "tok").string(),
                    out = (folder / "out.h5").string();
  ASSERT_EQ(::mkfifo(input.c_str(), 0600), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(kTool.c_str(), "elf-prepare", "corpus", "--input", input.c_str(), "--tokenizer",
            tokenizer.c_str(), "--max-length", "8", "--out", out.c_str(), "--log-level", "off", nullptr);
    ::_exit(127);
  }
  {
    std::ofstream feed(input);
    const std::string text = read_file(folder / "a.txt");
    for (int i = 0; i < 600 && !writing(folder); ++i) {
      feed << text << std::flush;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_TRUE(writing(folder));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
  }
  EXPECT_FALSE(fs::exists(out));
  const Outcome again = shell(folder, "$P corpus --input a.txt --tokenizer tok --max-length 8 --out out.h5");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("left over from an interrupted run"));
  EXPECT_EQ(Dataset::open(out).info().rows, 20000);
}

// Five kills spread over the run, shuffling and closing included: under the final name there is never
// anything but a whole dataset.
TEST(ElfPrepare, ShowsNoPartOfADatasetWheneverItIsKilled) {
  const TemporaryFolder folder;
  write_words(folder, 60000);
  train_words(folder);
  const std::string input = (folder / "a.txt").string(), tokenizer = (folder / "tok").string(),
                    out = (folder / "out.h5").string();
  const auto start = [&] {
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl(kTool.c_str(), "elf-prepare", "corpus", "--input", input.c_str(), "--tokenizer",
              tokenizer.c_str(), "--max-length", "8", "--out", out.c_str(), "--log-level", "off",
              "--shuffle-seed", "1", nullptr);
      ::_exit(127);
    }
    return child;
  };
  int status = 0;
  const auto begin = std::chrono::steady_clock::now();
  ::waitpid(start(), &status, 0);
  const auto whole_run = std::chrono::steady_clock::now() - begin;
  ASSERT_EQ(status, 0);
  fs::remove(out);
  int killed = 0;
  for (const double share : {0.31, 0.52, 0.74, 0.88, 0.97}) {
    const pid_t child = start();
    std::this_thread::sleep_for(whole_run * share);
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    killed += WIFSIGNALED(status);
    if (fs::exists(out)) {
      EXPECT_EQ(Dataset::open(out).info().rows, 60000);  // it was just done
      fs::remove(out);
    }
  }
  EXPECT_GE(killed, 3);
}

TEST(ElfPrepare, ReadsPatternsAndTables) {
  const TemporaryFolder folder;
  write_words(folder, 500);
  train_words(folder);
  const Outcome split = shell(folder,
                              "split -n l/3 -d a.txt part- && gzip part-01 && $P corpus --input 'part-*' "
                              "--tokenizer tok --max-length 8 --out parts.h5 && "
                              "$P corpus --input a.txt --tokenizer tok --max-length 8 --out whole.h5");
  ASSERT_EQ(split.code, 0) << split.err;
  EXPECT_EQ(Dataset::open(folder / "parts.h5").info().data_hash,
            Dataset::open(folder / "whole.h5").info().data_hash);
  const Outcome table =
      shell(folder,
            "cat -n a.txt > n.tsv && $P corpus --input n.tsv --tsv-column 2 --tokenizer tok "
            "--max-length 8 --out table.h5 && $P pairs --tsv n.tsv --columns 2 2 --tokenizer "
            "tok --max-input-length 8 --max-length 16 --out pairs.h5");
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(Dataset::open(folder / "table.h5").info().data_hash,
            Dataset::open(folder / "whole.h5").info().data_hash);
  EXPECT_EQ(Dataset::open(folder / "pairs.h5").info().rows, 500);
  const Outcome none = shell(folder, "$P corpus --input 'no-*' --tokenizer tok --max-length 8 --out x.h5");
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
  const Outcome made = shell(folder, "$P recipe recipe.yaml");
  ASSERT_EQ(made.code, 0) << made.err;
  const Dataset data = Dataset::open(folder / "a.h5");
  EXPECT_EQ(data.info().rows, 1000);
  EXPECT_EQ(data.info().longest_row, 5);
  const Outcome again = shell(folder, "$P recipe recipe.yaml");
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, AllOf(HasSubstr("a.h5 is there already"), HasSubstr("tok is there already")));
  folder.write("wrong.yaml",
               "steps:\n  - corpus: {input: a.txt, tokenizer: tok, max-length: 8, out: b.h5, lenght: 3}\n");
  const Outcome wrong = shell(folder, "$P recipe wrong.yaml");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("wrong.yaml:2: corpus"), HasSubstr("lenght")));
}

// The recipes of the published data are whole: every step parses, and the first thing missing is a file.
TEST(ElfPrepare, RecipesOfThePublishedDataParse) {
  const TemporaryFolder folder;
  for (const char* name : {"openwebtext", "wmt14-de-en", "xsum"}) {
    const Outcome outcome =
        shell(folder, std::string("$P recipe " ELF_TEST_DIR "/../configs/data/") + name + ".yaml");
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
          "python3 $C openwebtext owt.tar | $P corpus --input - --field text --tokenizer tok "
          "--max-length 8 --out owt.h5");
  ASSERT_EQ(owt.code, 0) << owt.err;
  const Dataset documents = Dataset::open(folder / "owt.h5");
  const auto tokenizer = SentencePieceTokenizer::load(folder / "tok");
  ASSERT_EQ(documents.info().rows, 2);
  const std::set<std::string> texts = {tokenizer.decode(documents.tokens(0)),
                                       tokenizer.decode(documents.tokens(1))};
  EXPECT_EQ(texts, (std::set<std::string>{"w1 w2 w3", "w4"}));

  const Outcome xsum = shell(
      folder, corpora +
                  "mkdir bbc && printf '[SN]URL[SN]\nx\n\n[SN]TITLE[SN]\nw9\n\n[SN]FIRST-SENTENCE[SN]\nw5\n\n"
                  "[SN]RESTBODY[SN]\nw6\nw7\n' > bbc/12.summary && tar czf x.tgz bbc && "
                  "echo '{\"train\": [\"12\"], \"test\": [\"13\"]}' > split.json && python3 $C xsum x.tgz "
                  "split.json > x.jsonl && "
                  "$P pairs --jsonl x.jsonl --source-field document --target-field summary --tokenizer tok "
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
  const Outcome made = shell(folder, "$P corpus --input a.txt --tokenizer tok --max-length 8 --out a.h5");
  ASSERT_EQ(made.code, 0) << made.err;
  for (const char* memory : {"0", "100"}) {
    const Outcome outcome = shell(
        folder, std::string("$P benchmark --data a.h5 --batch 32 --seconds 0.1 --json --memory ") + memory);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const auto result = nlohmann::json::parse(outcome.out);
    EXPECT_GT(result["rows_per_second"], 0.0);
    EXPECT_EQ(result["length"]["median"], 6);  // five words and an EOS
    EXPECT_EQ(result["length"]["p99"], 6);
    EXPECT_EQ(result["batch_length"], 8);
  }
}

}  // namespace
}  // namespace elf
