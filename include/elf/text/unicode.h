// The few Unicode operations that scores depend on, with the meaning they have in Python (sacreBLEU and
// rouge_score are written in it): white space, lower case, code points. Text is UTF-8; a malformed sequence
// counts as one U+FFFD.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace elf {

std::u32string decode_utf8(std::string_view text);
std::string encode_utf8(std::u32string_view text);

// Full Unicode lower case, root locale: context rules (final sigma) and one-to-many mappings (U+0130 gives i
// and U+0307) included. Equals str.lower().
std::string lowercase(std::string_view text);

// What str.split() and str.strip() take for white space: also U+001C..U+001F, U+0085, U+00A0, U+2000..U+200A,
// U+3000 and the like; not U+200B.
bool is_white_space(char32_t character);

// The maximal runs without white space, as str.split() gives them. The views point into `text`.
std::vector<std::string_view> split_words(std::string_view text);

// Without white space at the end, or at both ends.
std::string_view trim_right(std::string_view text);
std::string_view trim(std::string_view text);

// Every `from` in `text` replaced by `to`, left to right. `from` must not be empty.
std::string replace_all(std::string text, std::string_view from, std::string_view to);

}  // namespace elf
