// Libraries that are loaded when asked for.
#include "elf/base/plugin.h"

#include <gtest/gtest.h>

namespace elf {
namespace {

TEST(Plugin, AFunctionIsFoundWhereTheLoaderLooks) {
  const PluginFunction found = plugin_function("libm.so.6", "floor");
  ASSERT_NE(found.address, nullptr) << found.failure;
  EXPECT_EQ(reinterpret_cast<double (*)(double)>(found.address)(2.5), 2.0);
}

TEST(Plugin, WhatIsMissingIsNamed) {
  const PluginFunction no_library = plugin_function("libelf_nowhere.so", "f");
  EXPECT_EQ(no_library.address, nullptr);
  EXPECT_NE(no_library.failure.find("libelf_nowhere.so"), std::string::npos);
  const PluginFunction no_symbol = plugin_function("libm.so.6", "elf_no_such_function");
  EXPECT_EQ(no_symbol.address, nullptr);
  EXPECT_NE(no_symbol.failure.find("elf_no_such_function"), std::string::npos);
}

}  // namespace
}  // namespace elf
