// Words of texts as ROUGE counts them, as numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "elf/metrics/rouge.h"
#include "ngrams.h"

namespace elf {

// Calls f(word) for each lower-cased word of `text`, not yet stemmed.
void for_each_rouge_word(std::string_view text, RougeTokenizer tokenizer,
                         const std::function<void(std::string_view word)>& f);

// The word as it is compared: its stem where the options ask for one.
std::string rouge_form(std::string_view word, const RougeOptions& options);

// The pieces of a line that end where ICU sees a sentence's end.
std::vector<std::string_view> split_sentences(std::string_view line);

}  // namespace elf
