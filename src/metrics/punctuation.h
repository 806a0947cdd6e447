// Setting punctuation apart with blanks, as the tokenizers of BLEU and TER do. Templates over strings of
// bytes (ASCII text, nearly always) and of code points.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "elf/text/words.h"

namespace elf::punctuation {

inline bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

inline bool is_digit(char32_t c) {
  return c >= '0' && c <= '9';
}
inline bool is_no_digit(char32_t c) {
  return !is_digit(c);
}
inline bool is_period_or_comma(char32_t c) {
  return c == '.' || c == ',';
}
inline bool is_dash(char32_t c) {
  return c == '-';
}

// ASCII punctuation that stands apart wherever it is; the blank is in the set too. Not: ' , - .
inline bool is_always_apart(char32_t c) {
  return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
         (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

// Every matching character between two blanks.
template <class String, class Test>
String set_apart(const String& text, Test test) {
  String out;
  out.reserve(text.size() * 2);
  for (const auto c : text) {
    if (test(c)) {
      out.append({' ', c, ' '});
    } else {
      out.push_back(c);
    }
  }
  return out;
}

enum class Apart { kFirst, kSecond };  // which of the two characters gets blanks around it

// Left to right over pairs that match (first, second) and do not overlap: a character that ended one pair
// cannot start the next, as with a regular expression's substitution.
template <class String, class First, class Second>
String set_apart_in_pairs(const String& text, First first, Second second, Apart apart) {
  String out;
  out.reserve(text.size() * 2);
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !first(text[i]) || !second(text[i + 1])) {
      out.push_back(text[i]);
      continue;
    }
    if (apart == Apart::kFirst) {
      out.append({' ', text[i], ' ', text[i + 1]});
    } else {
      out.append({text[i], ' ', text[i + 1], ' '});
    }
    ++i;
  }
  return out;
}

// Periods and commas apart but between digits, dashes apart after digits.
template <class String>
String set_number_marks_apart(String text) {
  text = set_apart_in_pairs(text, is_no_digit, is_period_or_comma, Apart::kSecond);
  text = set_apart_in_pairs(text, is_period_or_comma, is_no_digit, Apart::kFirst);
  return set_apart_in_pairs(text, is_digit, is_dash, Apart::kSecond);
}

// One after the other: &amp;lt; becomes <.
inline std::string undo_entities(std::string text) {
  if (text.find('&') == std::string::npos) return text;
  text = replace_all(std::move(text), "&quot;", "\"");
  text = replace_all(std::move(text), "&amp;", "&");
  text = replace_all(std::move(text), "&lt;", "<");
  return replace_all(std::move(text), "&gt;", ">");
}

inline std::string with_single_blanks(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (const std::string_view word : split_words(text)) {
    if (!out.empty()) out.push_back(' ');
    out.append(word);
  }
  return out;
}

}  // namespace elf::punctuation
