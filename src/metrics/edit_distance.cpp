#include "elf/metrics/edit_distance.h"

#include <algorithm>

#include "elf/base/error.h"
#include "elf/text/unicode.h"
#include "elf/text/words.h"

namespace elf {

int64_t edit_distance(std::u32string_view a, std::u32string_view b) {
  std::vector<int64_t> row(b.size() + 1);  // row[j]: distance of the part of a so far and the first j of b
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int64_t>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

MatchScore match(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references) {
  if (hypotheses.size() != references.size()) {
    usage_error("match: ", hypotheses.size(), " hypotheses, but ", references.size(), " references");
  }
  MatchScore score;
  score.pairs = static_cast<int64_t>(hypotheses.size());
  int64_t equal = 0;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const std::u32string hypothesis = decode_utf8(strip_space(hypotheses[i], true, true)),
                         reference = decode_utf8(strip_space(references[i], true, true));
    const int64_t edits = edit_distance(hypothesis, reference);
    equal += edits == 0;
    score.edits += edits;
    score.reference_length += static_cast<int64_t>(reference.size());
  }
  score.exact = static_cast<double>(equal) / static_cast<double>(std::max<int64_t>(1, score.pairs));
  score.cer =
      static_cast<double>(score.edits) / static_cast<double>(std::max<int64_t>(1, score.reference_length));
  return score;
}

}  // namespace elf
