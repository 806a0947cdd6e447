// Every reader of foreign bytes on its corpus: seeds, cases that a fuzzer once found, and seeded mutations of
// both.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "elf/base/files.h"
#include "elf/base/log.h"
#include "support/mutate.h"
#include "target.h"

namespace elf::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMutations = 400;  // a target

std::vector<fs::path> corpus_of(const Target& target) {
  const char* moved = std::getenv("ELF_TEST_DIR");
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::directory_iterator(fs::path(moved ? moved : ELF_TEST_DIR) / "fuzz/corpus" / target.name))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class Replay : public ::testing::TestWithParam<Target> {
 protected:
  Replay() { set_log_level(LogLevel::kOff); }
  ~Replay() override { set_log_level(LogLevel::kInfo); }
};

TEST_P(Replay, Corpus) {
  const std::vector<fs::path> files = corpus_of(GetParam());
  ASSERT_FALSE(files.empty()) << "no seeds for " << GetParam().name;
  for (const fs::path& file : files) EXPECT_EQ(fault_of(GetParam(), read_file(file)), "") << file;
}

TEST_P(Replay, MutatedCorpus) {
  const std::vector<fs::path> files = corpus_of(GetParam());
  ASSERT_FALSE(files.empty());
  for (uint64_t seed = 0; seed < kMutations; ++seed) {
    const fs::path& file = files[seed % files.size()];
    EXPECT_EQ(fault_of(GetParam(), test::mutated(read_file(file), seed)), "") << file << ", seed " << seed;
  }
}

// Readers that recurse would end the program: brackets within brackets in the places of values.
TEST_P(Replay, DeepNesting) {
  constexpr size_t kDepth = 100'000;
  std::string objects;
  for (size_t i = 0; i < kDepth; ++i) objects += "{\"a\":";
  const std::string nests[] = {std::string(kDepth, '['), std::string(kDepth, '[') + std::string(kDepth, ']'),
                               objects};
  for (const fs::path& file : corpus_of(GetParam())) {
    const std::string seed = read_file(file);
    if (seed.find('\0', 2) != std::string::npos) continue;  // no text
    size_t at = std::min<size_t>(1, seed.size());
    for (int place = 0; place < 4 && at != std::string::npos; ++place) {
      for (const std::string& nest : nests)
        EXPECT_EQ(fault_of(GetParam(), seed.substr(0, at) + nest + seed.substr(at)), "")
            << file << ", byte " << at;
      at = seed.find_first_of(":[,", at + 1);
      if (at != std::string::npos) ++at;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Readers, Replay, ::testing::ValuesIn(targets()),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace elf::fuzz
