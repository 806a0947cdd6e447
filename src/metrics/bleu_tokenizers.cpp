#include "elf/metrics/bleu_tokenizers.h"

#include <unicode/uchar.h>

#include <array>
#include <utility>

#include "elf/base/error.h"
#include "elf/text/unicode.h"
#include "elf/text/words.h"

namespace elf {
namespace {

constexpr std::array<std::pair<BleuTokenizer, std::string_view>, 5> kNames = {{
    {BleuTokenizer::k13a, "13a"},
    {BleuTokenizer::kIntl, "intl"},
    {BleuTokenizer::kZh, "zh"},
    {BleuTokenizer::kChar, "char"},
    {BleuTokenizer::kNone, "none"},
}};

using Test = bool (*)(char32_t);

bool is_digit(char32_t c) {
  return c >= '0' && c <= '9';
}
bool is_no_digit(char32_t c) {
  return !is_digit(c);
}
bool is_period_or_comma(char32_t c) {
  return c == '.' || c == ',';
}
bool is_dash(char32_t c) {
  return c == '-';
}

// ASCII punctuation that stands apart wherever it is; the blank is in the set too. Not: ' , - .
bool is_always_apart(char32_t c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

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

// Every matching character between two blanks.
std::u32string set_apart(std::u32string_view text, Test test) {
  std::u32string out;
  out.reserve(text.size() * 2);
  for (const char32_t c : text) {
    if (test(c)) {
      out.append({U' ', c, U' '});
    } else {
      out.push_back(c);
    }
  }
  return out;
}

enum class Apart { kFirst, kSecond };  // which of the two characters gets blanks around it

// Left to right over pairs that match (first, second) and do not overlap: a character that ended one pair
// cannot start the next, as with a regular expression's substitution.
std::u32string set_apart_in_pairs(std::u32string_view text, Test first, Test second, Apart apart) {
  std::u32string out;
  out.reserve(text.size() * 2);
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !first(text[i]) || !second(text[i + 1])) {
      out.push_back(text[i]);
      continue;
    }
    if (apart == Apart::kFirst) {
      out.append({U' ', text[i], U' ', text[i + 1]});
    } else {
      out.append({text[i], U' ', text[i + 1], U' '});
    }
    ++i;
  }
  return out;
}

std::string with_single_blanks(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (const std::string_view word : split_words(text)) {
    if (!out.empty()) out.push_back(' ');
    out.append(word);
  }
  return out;
}

// What 13a and zh share: punctuation of Western languages.
std::string tokenize_western(std::u32string text) {
  text = set_apart(text, is_always_apart);
  text = set_apart_in_pairs(text, is_no_digit, is_period_or_comma, Apart::kSecond);
  text = set_apart_in_pairs(text, is_period_or_comma, is_no_digit, Apart::kFirst);
  text = set_apart_in_pairs(text, is_digit, is_dash, Apart::kSecond);
  return with_single_blanks(encode_utf8(text));
}

std::string tokenize_13a(std::string_view segment) {
  std::string text = replace_all(std::string(segment), "<skipped>", "");
  text = replace_all(std::move(text), "-\n", "");  // a word hyphenated over two lines
  text = replace_all(std::move(text), "\n", " ");
  if (text.find('&') != std::string::npos) {  // one after the other: &amp;lt; becomes <
    text = replace_all(std::move(text), "&quot;", "\"");
    text = replace_all(std::move(text), "&amp;", "&");
    text = replace_all(std::move(text), "&lt;", "<");
    text = replace_all(std::move(text), "&gt;", ">");
  }
  return tokenize_western(decode_utf8(" " + text + " "));  // the blanks let the pairs match at both ends
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
  return tokenize_western(set_apart(decode_utf8(strip_space(segment, true, true)), is_chinese_for_bleu));
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
