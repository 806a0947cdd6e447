// Porter's suffix stripper (An algorithm for suffix stripping, 1980) with the changes that NLTK makes to it
// by default, because rouge_score stems with NLTK: a dozen irregular forms, words of one or two letters left
// alone, -ies and -ied of short words, y after a consonant, -alli, -bli, -fulli, -logi, and *o for two
// letters.
#pragma once

#include <string>
#include <string_view>

namespace elf {

// The stem of one word, in lower case. "relational" -> "relat", "dying" -> "die".
std::string porter_stem(std::string_view word);

}  // namespace elf
