// Signs that a score is about to be computed with the wrong setting.
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

}  // namespace elf
