#include "elf/metrics/bleu_tokenizers.h"

#include <unicode/uchar.h>

#include <array>
#include <utility>

#include "elf/base/error.h"
#include "elf/text/unicode.h"
#include "elf/text/words.h"
#include "punctuation.h"

namespace elf {
namespace {

using namespace punctuation;

constexpr std::array<std::pair<BleuTokenizer, std::string_view>, 5> kNames = {{
    {BleuTokenizer::k13a, "13a"},
    {BleuTokenizer::kIntl, "intl"},
    {BleuTokenizer::kZh, "zh"},
    {BleuTokenizer::kChar, "char"},
    {BleuTokenizer::kNone, "none"},
}};

bool has_category(char32_t c, uint32_t mask) {
  return (U_GET_GC_MASK(static_cast<UChar32>(c)) & mask) != 0;
}
bool is_punctuation(char32_t c) {
  return has_category(c, U_GC_P_MASK);
}
bool is_symbol(char32_t c) {
  return has_category(c, U_GC_S_MASK);
}
bool is_no_number(char32_t c) {
  return !has_category(c, U_GC_N_MASK);
}

// What 13a and zh share: punctuation of Western languages.
template <class String>
String western_apart(const String& text) {
  return set_number_marks_apart(set_apart(text, is_always_apart));
}
std::string tokenize_western(const std::string& text) {
  return with_single_blanks(is_ascii(text) ? western_apart(text)
                                           : encode_utf8(western_apart(decode_utf8(text))));
}

std::string tokenize_13a(std::string_view segment) {
  std::string text = replace_all(std::string(segment), "<skipped>", "");
  text = replace_all(std::move(text), "-\n", "");  // a word hyphenated over two lines
  text = undo_entities(replace_all(std::move(text), "\n", " "));
  return tokenize_western(" " + text + " ");  // the blanks let the pairs match at both ends
}

std::string tokenize_intl(std::string_view segment) {
  std::u32string text = decode_utf8(segment);
  text = set_apart_in_pairs(text, is_no_number, is_punctuation, Apart::kSecond);
  text = set_apart_in_pairs(text, is_punctuation, is_no_number, Apart::kFirst);
  text = set_apart(text, is_symbol);
  return with_single_blanks(encode_utf8(text));
}

// The blocks that sacreBLEU lists. Two of its five-digit ranges are written with four-digit escapes, which
// makes one of them mean U+2001..U+2A6D: general punctuation, arrows, symbols and more count as Chinese, the
// supplementary planes do not. Kept: scores depend on it.
bool is_chinese_for_bleu(char32_t c) {
  constexpr std::array<std::pair<char32_t, char32_t>, 13> kBlocks = {{
      {0x2001, 0x2A6D},
      {0x2E80, 0x2EFF},
      {0x2F00, 0x2FDF},
      {0x2FF0, 0x303F},
      {0x3100, 0x312F},
      {0x31A0, 0x31BF},
      {0x31C0, 0x31EF},
      {0x3200, 0x4DB5},
      {0x4E00, 0x9FBB},
      {0xF900, 0xFA2D},
      {0xFA30, 0xFA6A},
      {0xFA70, 0xFAD9},
      {0xFF00, 0xFFEF},
  }};
  if ((c >= 0xFE10 && c <= 0xFE1F) || (c >= 0xFE30 && c <= 0xFE4F)) return true;
  for (const auto& [first, last] : kBlocks) {
    if (c >= first && c <= last) return true;
  }
  return false;
}

std::string tokenize_zh(std::string_view segment) {
  return tokenize_western(
      encode_utf8(set_apart(decode_utf8(strip_space(segment, true, true)), is_chinese_for_bleu)));
}

std::string tokenize_char(std::string_view segment) {
  std::u32string out;
  for (const char32_t c : decode_utf8(segment)) {
    if (!out.empty()) out.push_back(U' ');
    out.push_back(c);
  }
  return encode_utf8(out);
}

}  // namespace

BleuTokenizer parse_bleu_tokenizer(std::string_view name) {
  for (const auto& [tokenizer, known] : kNames) {
    if (known == name) return tokenizer;
  }
  usage_error("BLEU tokenizer: \"", name, "\" is not one of 13a, intl, zh, char, none");
}

std::string bleu_tokenizer_name(BleuTokenizer tokenizer) {
  for (const auto& [known, name] : kNames) {
    if (known == tokenizer) return std::string(name);
  }
  usage_error("BLEU tokenizer: no name for value ", static_cast<int>(tokenizer));
}

std::string bleu_tokenize(BleuTokenizer tokenizer, std::string_view segment) {
  switch (tokenizer) {
    case BleuTokenizer::k13a:
      return tokenize_13a(segment);
    case BleuTokenizer::kIntl:
      return tokenize_intl(segment);
    case BleuTokenizer::kZh:
      return tokenize_zh(segment);
    case BleuTokenizer::kChar:
      return tokenize_char(segment);
    case BleuTokenizer::kNone:
      break;
  }
  return std::string(segment);
}

}  // namespace elf
