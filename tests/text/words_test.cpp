// Case, words and code points as Python has them.
#include "elf/text/words.h"

#include <gtest/gtest.h>

namespace elf {
namespace {

TEST(Words, AsPythonHasIt) {
  EXPECT_EQ(lowercase("ΟΔΟΣ ΣΑΣ Σ"), "οδος σας σ");  // final sigma, and one that stands alone
  EXPECT_EQ(lowercase("İK"), "i̇k");                  // I with dot: two code points; Kelvin sign
  EXPECT_EQ(split_words(" a\u00A0b\u2028c\x1F"
                        "d\u200Be "),
            (std::vector<std::string_view>{"a", "b", "c", "d\u200Be"}));
}

TEST(Words, MalformedBecomesOneReplacement) {
  const std::string malformed = {'a', '\xFF', 'b'};
  EXPECT_EQ(encode_utf8(decode_utf8(malformed)), "a\uFFFDb");
}

}  // namespace
}  // namespace elf
