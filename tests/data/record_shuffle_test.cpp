// The shuffle of elf-prepare --shuffle-seed, in memory and through its file.
#include "../../src/data/record_shuffle.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "elf/base/error.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

using test::TemporaryFolder;

// The strings' numbers in the order in which they come out, each string being its number and then `filling`.
std::vector<std::string> shuffled(const std::filesystem::path& folder, int strings,
                                  const std::string& filling, uint64_t seed) {
  RecordShuffle shuffle(folder, seed);
  for (int i = 0; i < strings; ++i) shuffle.add(std::to_string(i) + filling);
  std::vector<std::string> order;
  shuffle.for_each([&](std::string_view bytes) {
    const size_t digits = bytes.size() - filling.size();
    EXPECT_EQ(bytes.substr(digits), filling);
    order.emplace_back(bytes.substr(0, digits));
  });
  return order;
}

TEST(RecordShuffle, EveryStringOnceInAnOrderThatDependsOnTheSeedOnly) {
  const TemporaryFolder folder;
  const std::vector<std::string> order = shuffled(folder.path(), 1000, "", 3);
  EXPECT_EQ(order, shuffled(folder.path(), 1000, "", 3));
  EXPECT_NE(order, shuffled(folder.path(), 1000, "", 4));
  std::vector<std::string> expected(1000);
  for (int i = 0; i < 1000; ++i) expected[static_cast<size_t>(i)] = std::to_string(i);
  EXPECT_NE(order, expected);
  EXPECT_TRUE(std::ranges::is_permutation(order, expected));
}

// 60 MB: more than waits in memory. The file has no name at any time.
TEST(RecordShuffle, TheFileGivesTheOrderThatMemoryGives) {
  const TemporaryFolder folder;
  EXPECT_EQ(shuffled(folder.path(), 600, std::string(100'000, 'x'), 3), shuffled(folder.path(), 600, "", 3));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(RecordShuffle, AFolderThatIsMissingIsNamed) {
  const TemporaryFolder folder;
  try {
    RecordShuffle(folder / "none", 1);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("none: no temporary file"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace elf
