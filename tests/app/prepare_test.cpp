// elf-prepare as a program: exit codes, what is printed, and that a killed run leaves nothing under the final
// name (field case 45).
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <nlohmann/json.hpp>
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
      {"$P", "subcommand"},
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

}  // namespace
}  // namespace elf
