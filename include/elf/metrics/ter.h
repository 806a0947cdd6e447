// Translation edit rate as sacreBLEU 2.6.0 computes it (Snover et al. 2006, after Tercom): edits that turn
// the hypothesis into the reference, moving a stretch of words being one edit, over the words of the
// reference, in percent: lower is better, and it may exceed 100.
//
// Of several references each segment takes the fewest edits and the mean length.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "elf/metrics/references.h"
#include "elf/metrics/resampling.h"

namespace elf {

struct TerOptions {
  bool case_sensitive = false;
  bool normalized = false;     // Tercom's tokenization of Western punctuation
  bool no_punct = false;       // . , ? : ; ! " ( ) taken out
  bool asian_support = false;  // with normalized: CJK characters apart; with no_punct: their marks taken out
};

struct TerScore {
  double score = 0;
  double edits = 0, ref_length = 0;
  std::string signature;  // sacreBLEU's, but for the version field
};

// Throws Error (usage): unequal counts, or a segment without any reference.
TerScore corpus_ter(const std::vector<std::string>& hypotheses,
                    const std::vector<ReferenceStream>& references, const TerOptions& options = {});

std::string ter_signature(const std::vector<ReferenceStream>& references, const TerOptions& options);

// For resampling, and for scores of single segments.
CorpusStatistics ter_statistics(const std::vector<std::string>& hypotheses,
                                const std::vector<ReferenceStream>& references,
                                const TerOptions& options = {});

// The segment as its words are compared, with one blank between them.
std::string ter_tokenize(std::string_view segment, const TerOptions& options = {});

// Edits from words to words, moves included, as far as a greedy search finds them: of all moves of up to ten
// words that the reference has elsewhere the one that saves most, again and again.
int64_t ter_edits(const std::vector<int32_t>& hypothesis, const std::vector<int32_t>& reference);

}  // namespace elf
