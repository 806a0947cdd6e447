// docs/CONFIG.md is what describe_fields() says.
#include <cstdlib>

#include "config/support.h"

namespace elf {
namespace {

TEST(Documentation, ConfigMdIsUpToDate) {
  const std::filesystem::path file = std::filesystem::path(ELF_TEST_DIR).parent_path() / "docs" / "CONFIG.md";
  const char* update = std::getenv("ELF_UPDATE_DOCS");
  if (update != nullptr && std::string(update) == "1") write_file(file, describe_fields());
  EXPECT_TRUE(std::filesystem::exists(file) && read_file(file) == describe_fields())
      << file
      << " differs from the field lists; renew it with: ELF_UPDATE_DOCS=1 ctest --preset default -R "
         "config_test";
}

TEST(Documentation, NamesEveryKey) {
  const std::string text = describe_fields();
  for (const auto& [dotted, value] : flat_fields(RunConfig{})) {
    const size_t dot = dotted.find('.');
    EXPECT_THAT(text, ::testing::HasSubstr("## `" + dotted.substr(0, dot) + ":`"));
    EXPECT_THAT(text, ::testing::HasSubstr("| `" + dotted.substr(dot + 1) + "` |")) << dotted;
  }
}

}  // namespace
}  // namespace elf
