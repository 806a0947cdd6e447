#include "elf/metrics/text_checks.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include <algorithm>
#include <string_view>

#include "elf/text/unicode.h"
#include "elf/text/words.h"

namespace elf {
namespace {

bool is_cjk(char32_t c) {
  if (c < 0x1100) return false;
  UErrorCode status = U_ZERO_ERROR;
  switch (uscript_getScript(static_cast<UChar32>(c), &status)) {
    case USCRIPT_HAN:
    case USCRIPT_HIRAGANA:
    case USCRIPT_KATAKANA:
    case USCRIPT_HANGUL:
    case USCRIPT_BOPOMOFO:
      return true;
    default:
      return false;
  }
}

double share(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

int64_t count_tokenized_periods(const std::vector<std::string>& texts) {
  return std::count_if(texts.begin(), texts.end(), [](std::string_view text) {
    return text.size() >= 2 && text.substr(text.size() - 2) == " .";
  });
}

double cjk_share(const std::vector<std::string>& texts) {
  int64_t cjk = 0, all = 0;
  for (const std::string& text : texts) {
    for (const char32_t c : decode_utf8(text)) {
      all += !is_white_space(c);
      cjk += is_cjk(c);
    }
  }
  return share(cjk, all);
}

double rouge_dropped_share(const std::vector<std::string>& texts) {
  int64_t dropped = 0, letters = 0;
  for (const std::string& text : texts) {
    for (const char32_t c : decode_utf8(lowercase(text))) {
      if (!u_isalpha(static_cast<UChar32>(c))) continue;
      ++letters;
      dropped += c < 'a' || c > 'z';
    }
  }
  return share(dropped, letters);
}

int64_t count_trailing_space(const std::vector<std::string>& texts) {
  return std::count_if(texts.begin(), texts.end(), [](std::string_view text) {
    return strip_space(text, false, true).size() != text.size();
  });
}

int64_t count_unknown_marks(const std::vector<std::string>& texts) {
  return std::count_if(texts.begin(), texts.end(),
                       [](std::string_view text) { return text.find("\u2047") != std::string_view::npos; });
}

CutTexts cut_texts(const std::vector<std::string>& texts) {
  CutTexts result;
  for (const std::string& text : texts) {
    const auto words = static_cast<int64_t>(split_words(text).size());
    if (words > result.words) result = {0, words, false};
    result.count += words == result.words;
  }
  const auto count = static_cast<int64_t>(texts.size());
  result.suspicious = count >= 50 && result.words >= 16 && 20 * result.count > count;
  return result;
}

}  // namespace elf
