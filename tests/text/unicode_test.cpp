#include "elf/text/unicode.h"

#include <gtest/gtest.h>

namespace elf {
namespace {

using namespace std::string_literals;
constexpr size_t kNone = std::string_view::npos;

TEST(Unicode, FindsBadText) {
  EXPECT_EQ(find_bad_text(""), kNone);
  EXPECT_EQ(find_bad_text("plain text, quite long"), kNone);
  EXPECT_EQ(find_bad_text("\u00e4\u20ac\U0001F600\U0010FFFF\uD7FF\uE000"), kNone);
  EXPECT_EQ(find_bad_text("cat \xFF sat"), 4u);
  EXPECT_EQ(find_bad_text("0123456789 nul \0."s), 15u);
  EXPECT_EQ(find_bad_text("a\xED\xA0\x80"), 1u);        // a surrogate
  EXPECT_EQ(find_bad_text("ab\xC0\xAF"), 2u);           // overlong
  EXPECT_EQ(find_bad_text("abc\xF4\x90\x80\x80"), 3u);  // above U+10FFFF
  EXPECT_EQ(find_bad_text("abcdefgh\xE2\x82"), 8u);     // cut short
  EXPECT_EQ(find_bad_text("\x80"), 0u);                 // a continuation alone
}

TEST(Unicode, ReplacesMaximalBadSequences) {
  EXPECT_EQ(replace_bad_text("cat \xFF sat"), "cat \uFFFD sat");
  EXPECT_EQ(replace_bad_text("a\0b"s),
            "a\uFFFD"
            "b");
  EXPECT_EQ(replace_bad_text("\xE2\x82!"), "\uFFFD!");
  EXPECT_EQ(replace_bad_text("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(replace_bad_text("sound \u00e4"), "sound \u00e4");
}

TEST(Unicode, StripsWhatPythonStrips) {
  EXPECT_EQ(strip_space("\u3000\t a \u2028\x1F", true, true), "a");
  EXPECT_EQ(strip_space(" a ", true, false), "a ");
  EXPECT_EQ(strip_space(" a ", false, true), " a");
  EXPECT_EQ(strip_space("\u200B", true, true), "\u200B");  // a zero-width space is none
  EXPECT_TRUE(is_blank(" \u00A0\n"));
  EXPECT_FALSE(is_blank(" \u2581"));
}

TEST(Unicode, SplitsCharacters) {
  EXPECT_EQ(characters("a\u00e4\u20ac\U0001F600"),
            (std::vector<std::string_view>{"a", "\u00e4", "\u20ac", "\U0001F600"}));
}

}  // namespace
}  // namespace elf
