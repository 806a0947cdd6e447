#include "elf/text/unicode.h"

#include <cstring>

namespace elf {
namespace {

// Length in bytes of the valid code point at `at`, 0 when there is none. `bad` is then the length of the
// maximal bad sequence.
size_t code_point_length(std::string_view text, size_t at, size_t& bad) {
  const auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<uint8_t>(text[at + i]) : 0u; };
  const unsigned first = byte(0);
  bad = 1;
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and values above U+10FFFF.
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    bad = i;
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

uint32_t code_point(std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(bytes[i])); };
  switch (bytes.size()) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  }
}

// Eight bytes of plain ASCII without NUL, the common case.
bool eight_plain(const char* data) {
  uint64_t word;
  std::memcpy(&word, data, 8);
  return ((word | (word - 0x0101010101010101)) & 0x8080808080808080) == 0;
}

}  // namespace

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

size_t find_bad_text(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (at + 8 <= text.size() && eight_plain(text.data() + at)) {
      at += 8;
      continue;
    }
    size_t bad = 0;
    const size_t length = code_point_length(text, at, bad);
    if (length == 0 || text[at] == '\0') return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string replace_bad_text(std::string_view text) {
  std::string result;
  size_t at;
  while ((at = find_bad_text(text)) != std::string_view::npos) {
    size_t bad = 0;
    code_point_length(text, at, bad);
    result.append(text.substr(0, at)).append("\xEF\xBF\xBD");
    text.remove_prefix(at + bad);
  }
  return result.append(text);
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> result;
  for (size_t at = 0, bad = 0; at < text.size(); at += result.back().size()) {
    const size_t length = code_point_length(text, at, bad);
    result.push_back(text.substr(at, length > 0 ? length : bad));
  }
  return result;
}

std::string_view strip_space(std::string_view text, bool left, bool right) {
  size_t bad = 0;
  while (left && !text.empty()) {
    const size_t length = code_point_length(text, 0, bad);
    if (length == 0 || !is_white_space(code_point(text.substr(0, length)))) break;
    text.remove_prefix(length);
  }
  while (right && !text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && (static_cast<uint8_t>(text[start]) & 0xC0) == 0x80) --start;
    const size_t length = code_point_length(text, start, bad);
    if (length != text.size() - start || !is_white_space(code_point(text.substr(start)))) break;
    text.remove_suffix(length);
  }
  return text;
}

bool is_blank(std::string_view text) {
  return strip_space(text, true, false).empty();
}

}  // namespace elf
