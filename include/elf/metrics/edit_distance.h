// Exact matches and the character error rate of predictions that have one right answer (a pronunciation,
// say).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace elf {

// Levenshtein distance: the least number of insertions, deletions and substitutions of single code points.
// O(|a| |b|) time, O(|b|) memory.
int64_t edit_distance(std::u32string_view a, std::u32string_view b);

struct MatchScore {
  double exact = 0;  // share of pairs whose texts are equal
  double cer = 0;    // edits of all pairs / code points of all references; may exceed 1
  int64_t pairs = 0, edits = 0, reference_length = 0;
};

// White space at both ends is left out; nothing else is made alike (no Unicode normalisation, no case
// folding). Without any reference character cer is the number of edits. Throws Error (usage) for unequal
// counts.
MatchScore match(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references);

}  // namespace elf
