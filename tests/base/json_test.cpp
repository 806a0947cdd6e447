// JSON that others wrote.
#include "elf/base/json.h"

#include <gtest/gtest.h>

namespace elf {
namespace {

std::string nested(int64_t depth) {
  return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
}

TEST(Json, IsReadToALimitedDepth) {
  EXPECT_TRUE(parse_json(nested(kDeepestJson)).is_array());
  EXPECT_TRUE(parse_json(nested(kDeepestJson + 1)).is_discarded());
  EXPECT_TRUE(parse_json(std::string(1'000'000, '[')).is_discarded());
  EXPECT_TRUE(parse_json("{").is_discarded());
  EXPECT_TRUE(parse_json<nlohmann::ordered_json>("{\"b\": 1, \"a\": 2}").is_object());
}

TEST(Json, BracketsInTextsAreNoNesting) {
  const std::string brackets(1000, '[');
  EXPECT_EQ(parse_json("[\"\\\"" + brackets + "\"]")[0], "\"" + brackets);
  EXPECT_FALSE(json_nests_too_deep("\"\\\\\"" + nested(10)));
  EXPECT_TRUE(json_nests_too_deep("\"\\\\\"" + brackets));
  std::string siblings = "[";
  for (int i = 0; i < 1000; ++i) siblings += "[],";
  EXPECT_TRUE(parse_json(siblings + "0]").is_array());
}

TEST(Json, TextInAnObject) {
  const nlohmann::json object = {{"a", "text"}, {"b", 3}};
  EXPECT_EQ(text_in(object, "a"), "text");
  EXPECT_EQ(text_in(object, "b", "else"), "else");
  EXPECT_EQ(text_in(object, "c"), "");
  EXPECT_EQ(text_in(nlohmann::json(3), "a"), "");
}

}  // namespace
}  // namespace elf
