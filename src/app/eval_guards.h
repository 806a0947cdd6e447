// Warnings about texts and settings that do not fit each other: a score can be computed, but not trusted.
#pragma once

#include <string>
#include <vector>

#include "eval_common.h"

namespace elf::app {

// Before BLEU, chrF and TER: tokenized-looking hypotheses, CJK text under 13a, tabs in a single reference
// file, and what warn_about_references says. `tokenizer`: BLEU's.
void warn_about_translations(const Texts& hypotheses, const std::vector<Texts>& references,
                             const std::string& tokenizer);

// References that were decoded from token ids, or cut at a maximal length: they must be the raw text.
void warn_about_references(const Texts& references);

// White space at the end, where it counts.
void warn_about_trailing_space(const Texts& texts, const std::string& effect);

}  // namespace elf::app
