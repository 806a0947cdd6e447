// The tokenizers of sacreBLEU 2.6.0 that need no dictionary. Each takes one segment and gives its tokens
// separated by white space.
#pragma once

#include <string>
#include <string_view>

namespace elf {

enum class BleuTokenizer {
  k13a,   // mteval-v13a: punctuation apart, except between digits; a few HTML entities undone
  kIntl,  // mteval-v14: every Unicode punctuation mark next to a non-number and every symbol apart
  kZh,    // characters of Chinese blocks apart, then as 13a
  kChar,  // every character apart
  kNone,  // white space only
};

// "13a", "intl", "zh", "char", "none", and back. Throws Error (usage) naming the known ones.
BleuTokenizer parse_bleu_tokenizer(std::string_view name);
std::string bleu_tokenizer_name(BleuTokenizer tokenizer);

std::string bleu_tokenize(BleuTokenizer tokenizer, std::string_view segment);

}  // namespace elf
