// The shares behind the warnings, counted by hand.
#include "elf/metrics/text_checks.h"

#include <gtest/gtest.h>

#include "elf/text/unicode.h"

namespace elf {
namespace {

TEST(TextChecks, HandCounted) {
  EXPECT_EQ(count_tokenized_periods({"done .", "done.", " .", ".", "done . "}), 2);
  EXPECT_DOUBLE_EQ(cjk_share({"今天 ab", "カ한"}), 4.0 / 6);
  EXPECT_EQ(cjk_share({" ", ""}), 0.0);
  EXPECT_DOUBLE_EQ(rouge_dropped_share({"Café 12!", "Ω"}), 2.0 / 5);
  EXPECT_EQ(rouge_dropped_share({"123"}), 0.0);
}

TEST(Unicode, AsPythonHasIt) {
  EXPECT_EQ(lowercase("ΟΔΟΣ ΣΑΣ Σ"), "οδος σας σ");  // final sigma, and one that stands alone
  EXPECT_EQ(lowercase("İK"), "i̇k");                  // I with dot: two code points; Kelvin sign
  EXPECT_EQ(split_words(" a\xC2\xA0"
                        "b\xE2\x80\xA8"
                        "c\x1F"
                        "d\xE2\x80\x8B"
                        "e "),
            (std::vector<std::string_view>{"a", "b", "c",
                                           "d\xE2\x80\x8B"
                                           "e"}));
  EXPECT_EQ(trim("\xE3\x80\x80 x y\t\n"), "x y");
  EXPECT_EQ(trim_right(" \n"), "");
}

TEST(Unicode, MalformedBecomesOneReplacement) {
  EXPECT_EQ(encode_utf8(decode_utf8("a\xFF"
                                    "b")),
            "a\xEF\xBF\xBD"
            "b");
}

}  // namespace
}  // namespace elf
