// Words, case and code points of UTF-8 text, with the meaning they have in Python: the published scorers are
// written in it. A malformed sequence counts as one U+FFFD. White space is what is_white_space of unicode.h
// says.
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

// The maximal runs without white space, as str.split() gives them. The views point into `text`.
std::vector<std::string_view> split_words(std::string_view text);

// Every `from` in `text` replaced by `to`, left to right. `from` must not be empty.
std::string replace_all(std::string text, std::string_view from, std::string_view to);

}  // namespace elf
