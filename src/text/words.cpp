#include "elf/text/words.h"

#include <unicode/locid.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <algorithm>

#include "elf/text/unicode.h"

namespace elf {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// The code point that starts at `position`, which moves behind it.
char32_t next_code_point(std::string_view text, int32_t& position) {
  UChar32 c;
  U8_NEXT(reinterpret_cast<const uint8_t*>(text.data()), position, static_cast<int32_t>(text.size()), c);
  return c < 0 ? kReplacement : static_cast<char32_t>(c);
}

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (int32_t i = 0; i < static_cast<int32_t>(text.size());) out.push_back(next_code_point(text, i));
  return out;
}

std::string encode_utf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t c : text) {
    char bytes[U8_MAX_LENGTH];
    int32_t length = 0;
    U8_APPEND_UNSAFE(bytes, length, static_cast<UChar32>(c));
    out.append(bytes, static_cast<size_t>(length));
  }
  return out;
}

std::string lowercase(std::string_view text) {
  std::string out;
  if (is_ascii(text)) {  // nearly always: worth its own loop
    out.assign(text);
    for (char& c : out) {
      if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
    }
    return out;
  }
  icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int32_t>(text.size())))
      .toLower(icu::Locale::getRoot())
      .toUTF8String(out);
  return out;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  words.reserve(text.size() / 4);
  int32_t start = -1;
  for (int32_t i = 0; i < static_cast<int32_t>(text.size());) {
    const int32_t at = i;
    const auto byte = static_cast<unsigned char>(text[static_cast<size_t>(i)]);
    if (byte > ' ' && byte < 0x80) {  // nearly always
      if (start < 0) start = at;
      ++i;
      continue;
    }
    if (is_white_space(next_code_point(text, i))) {
      if (start >= 0) words.push_back(text.substr(start, at - start));
      start = -1;
    } else if (start < 0) {
      start = at;
    }
  }
  if (start >= 0) words.push_back(text.substr(start));
  return words;
}

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace elf
