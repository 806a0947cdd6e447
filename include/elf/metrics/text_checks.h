// Signs that a score is about to be computed with the wrong setting, or on text that is not what it should
// be.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace elf {

// Texts that end in a blank and a full stop: text that a tokenizer has already been over. sacreBLEU warns
// from 100 on.
int64_t count_tokenized_periods(const std::vector<std::string>& texts);

// Share of Han, Kana, Hangul and Bopomofo characters among all that are not white space; 0 without any.
double cjk_share(const std::vector<std::string>& texts);

// Share of the letters that ROUGE's tokenizer drops: all but a-z, after lower-casing; 0 without any letter.
double rouge_dropped_share(const std::vector<std::string>& texts);

// Texts with white space at their end: BLEU and TER take it off, exact match and Gen. PPL do not.
int64_t count_trailing_space(const std::vector<std::string>& texts);

// Texts with U+2047 between blanks: what SentencePiece writes for a token that it does not know. References
// with it were decoded from token ids; the raw text should be there.
int64_t count_unknown_marks(const std::vector<std::string>& texts);

// How many texts have as many words as the longest one, and how many words that is. Many of them: the texts
// were cut at a maximal length.
struct CutTexts {
  int64_t count = 0, words = 0;
  bool suspicious = false;  // of 50 texts or more over 5 %, and 16 words or more
};
CutTexts cut_texts(const std::vector<std::string>& texts);

}  // namespace elf
