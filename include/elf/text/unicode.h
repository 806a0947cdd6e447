// Small facts about UTF-8 text that the readers and tokenizers share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace elf {

// Offset of the first byte that is NUL or does not belong to valid UTF-8 (surrogates, overlong forms and
// values above U+10FFFF are invalid); npos when there is none.
size_t find_bad_text(std::string_view text);

// Every maximal bad sequence (and every NUL) replaced by U+FFFD.
std::string replace_bad_text(std::string_view text);

// The code points of valid UTF-8, each as its bytes.
std::vector<std::string_view> characters(std::string_view text);

// White space as Python's str.isspace, str.strip and str.split have it: U+001C..U+001F, U+0085, U+00A0 and
// U+3000 are, U+200B is not.
bool is_white_space(char32_t character);

// Without the Unicode white space at the ends asked for (what Python's str.strip takes off).
std::string_view strip_space(std::string_view text, bool left, bool right);

// Nothing but Unicode white space.
bool is_blank(std::string_view text);

}  // namespace elf
