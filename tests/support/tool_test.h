// A test of the tools as commands: a folder of its own, what it runs there, and what it expects of refusals.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "elf/base/json.h"
#include "support/command.h"

namespace elf::test {

class ToolTest : public ::testing::Test {
 protected:
  // For SetUpTestSuite, first.
  static void make_folder(const std::string& name) {
    std::string pattern = (std::filesystem::temp_directory_path() / ("elf_" + name + "_XXXXXX")).string();
    folder_ = ::mkdtemp(pattern.data());
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

  // One thread: bitwise comparisons need it, and tensors this small run no faster on two.
  static Outcome tool(const std::string& command) {
    return run(folder_, "export OMP_NUM_THREADS=1; " + command);
  }
  static Outcome must(const std::string& command) {
    const Outcome outcome = tool(command);
    EXPECT_EQ(outcome.code, 0) << command << "\n" << outcome.err;
    return outcome;
  }
  // In a command line: waits until `condition` holds, a minute at most.
  static std::string until(const std::string& condition) {
    return "for i in $(seq 1200); do " + condition + " 2>/dev/null && break; sleep 0.05; done; ";
  }
  // The user's mistake: exit 2, one message that holds `parts`, nothing on stdout, and no `left_over` file.
  static void expect_refusal(const std::string& command, const std::vector<std::string>& parts,
                             const std::string& left_over = "") {
    const Outcome outcome = tool(command);
    EXPECT_EQ(outcome.code, 2) << command << "\n" << outcome.err;
    for (const std::string& part : parts) EXPECT_THAT(outcome.err, ::testing::HasSubstr(part)) << command;
    EXPECT_THAT(outcome.err, ::testing::Not(::testing::HasSubstr("frame #"))) << command;
    EXPECT_EQ(outcome.out, "") << command;
    if (!left_over.empty()) EXPECT_FALSE(std::filesystem::exists(folder_ / left_over)) << command;
  }
  // Weights, averages and optimiser, byte by byte; paths in the folder.
  static void expect_equal_checkpoints(const std::filesystem::path& a, const std::filesystem::path& b) {
    for (const char* file : {"model.safetensors", "ema.safetensors", "optimizer.safetensors"}) {
      const std::string bytes = slurp(folder_ / a / file);
      ASSERT_FALSE(bytes.empty()) << a;
      EXPECT_TRUE(bytes == slurp(folder_ / b / file)) << file << " of " << a << " and " << b;
    }
  }
  static std::vector<nlohmann::json> json_lines(const std::string& text) {
    std::vector<nlohmann::json> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(parse_json_or_throw(line));
    return lines;
  }
  static std::vector<nlohmann::json> metrics(const std::string& run_name) {
    return json_lines(slurp(folder_ / run_name / "metrics.jsonl"));
  }

  // A text of eleven words whose lines have 3 to 6 of them.
  static std::string small_text(int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i) {
      for (int k = 0; k < 3 + i % 4; ++k) text += (k ? " " : "") + kWords[(i * 7 + k * k * 3 + k * i) % 11];
      text += "\n";
    }
    return text;
  }
  // It as docs.txt, its tokenizer `words`, its datasets docs.h5 and valid.h5, its table.
  static void make_small_data() {
    spill(folder_ / "docs.txt", small_text(300));
    must(
        "elf-prepare tokenizer --input docs.txt --vocab-size 64 --model-type word --extra-ids 0 --out words");
    must(
        "elf-prepare corpus --input docs.txt --tokenizer words --max-length 8 --valid-fraction 0.1 "
        "--valid-out valid.h5 --out docs.h5");
    must("elf-prepare table --data docs.h5 --kind svd --width 8 --out table");
  }

  static inline const std::string kWords[] = {"the", "king", "said", "unto", "his", "men",
                                              "go",  "up",   "and",  "see",  "land"};
  static inline std::filesystem::path folder_;
};

}  // namespace elf::test
