// A folder's manifest: whole, damaged, and no manifest at all.
#include "elf/base/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elf/base/files.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

using ::testing::HasSubstr;

class Manifest : public ::testing::Test {
 protected:
  Manifest() {
    folder_.write("a", "content");
    write_manifest(folder_.path(), {"a"});
  }
  std::string problem(const std::string& manifest) {
    folder_.write(kManifestName, manifest);
    return manifest_problem(folder_.path());
  }
  test::TemporaryFolder folder_;
};

TEST_F(Manifest, FindsWhatIsNotWhole) {
  EXPECT_EQ(manifest_problem(folder_.path()), "");
  folder_.write("a", "contenx");
  EXPECT_THAT(manifest_problem(folder_.path()), HasSubstr("digest"));
  folder_.write("a", "content, more of it");
  EXPECT_THAT(manifest_problem(folder_.path()), HasSubstr("a has 19 bytes, expected 7"));
  std::filesystem::remove(folder_ / "a");
  EXPECT_EQ(manifest_problem(folder_.path()), "a is missing");
  EXPECT_EQ(manifest_problem(folder_ / "absent"), "is no folder");
}

// Any JSON at all may stand there.
TEST_F(Manifest, EntriesOfOtherKindsAreDamage) {
  for (const char* manifest : {"", "[]", "3", R"({"files": 3})", R"({"files": {"a": 3}})",
                               R"({"files": {"a": [1]}})", R"({"files": {"a": null}})"})
    EXPECT_EQ(problem(manifest), "manifest.json is damaged") << manifest;
  EXPECT_THAT(problem(R"({"files": {"a": {"bytes": "7"}}})"), HasSubstr("expected \"7\""));
  EXPECT_THAT(problem(R"({"files": {"a": {"bytes": 7, "digest": [7]}}})"), HasSubstr("digest"));
  EXPECT_THAT(problem(R"({"files": {"a": {"bytes": 7}}})"), HasSubstr("digest"));
}

}  // namespace
}  // namespace elf
