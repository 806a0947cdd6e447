#include "elf/metrics/ter.h"

#include <algorithm>

#include "elf/base/error.h"
#include "elf/text/unicode.h"
#include "elf/text/words.h"
#include "ngrams.h"
#include "punctuation.h"
#include "segments.h"

namespace elf {
namespace {

using namespace punctuation;

// Marks of Asian texts, full-width ones included.
bool is_asian_mark(char32_t c) {
  constexpr std::u32string_view kFullWidth = U"\uFF0E\uFF0C\uFF1F\uFF1A\uFF1B\uFF01\uFF02\uFF08\uFF09";
  return c == 0x3001 || c == 0x3002 || (c >= 0x3008 && c <= 0x3011) || (c >= 0x3014 && c <= 0x301F) ||
         (c >= 0xFF61 && c <= 0xFF65) || c == 0x30FB || kFullWidth.find(c) != std::u32string_view::npos;
}

// The blocks that sacreBLEU splits to characters. One of its ranges ends at U+3F22 where U+32FF is meant, and
// its rules for kana never apply (they ask for the start of a text, where a blank stands by then): kept.
bool is_asian_apart(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x31C0 && c <= 0x31EF) ||
         (c >= 0x2E80 && c <= 0x2EFF) || (c >= 0x3200 && c <= 0x3F22) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0xFE30 && c <= 0xFE4F) || is_asian_mark(c);
}

bool is_western_mark(char32_t c) {
  constexpr std::string_view kMarks = ".,?:;!\"()";
  return c < 0x80 && kMarks.find(static_cast<char>(c)) != std::string_view::npos;
}

std::u32string normalized(std::string text) {
  text = replace_all(std::move(text), "\n-", "");
  text = undo_entities(replace_all(std::move(text), "\n", " "));
  std::u32string marked = set_apart(decode_utf8(" " + text + " "), is_always_apart);
  return set_number_marks_apart(decode_utf8(replace_all(encode_utf8(marked), "'s ", " 's ")));
}

std::vector<int32_t> words_of(std::string_view segment, const TerOptions& options, WordNumbers& numbers) {
  return numbers.number(split_words(ter_tokenize(segment, options)));
}

}  // namespace

std::string ter_tokenize(std::string_view segment, const TerOptions& options) {
  const std::string_view stripped = strip_space(segment, false, true);
  const std::string text = options.case_sensitive ? std::string(stripped) : lowercase(stripped);
  if (text.empty() || (!options.normalized && !options.no_punct)) return with_single_blanks(text);
  std::u32string result = options.normalized ? normalized(text) : decode_utf8(text);
  if (options.normalized && options.asian_support) result = set_apart(result, is_asian_apart);
  if (options.no_punct) {
    std::erase_if(result, is_western_mark);
    if (options.asian_support) std::erase_if(result, is_asian_mark);
  }
  return with_single_blanks(encode_utf8(result));
}

CorpusStatistics ter_statistics(const std::vector<std::string>& hypotheses,
                                const std::vector<ReferenceStream>& references, const TerOptions& options) {
  WordNumbers numbers;
  CorpusStatistics statistics;
  statistics.score = [](const std::vector<double>& sums) {
    if (sums[1] > 0) return 100 * sums[0] / sums[1];
    return sums[0] > 0 ? 100.0 : 0.0;  // nothing but empty references
  };
  for_each_segment("TER", hypotheses, references, [&](const Segment& segment) {
    const std::vector<int32_t> hypothesis = words_of(segment.hypothesis, options, numbers);
    double fewest = -1, length = 0;
    for (const std::string_view text : segment.references) {
      const std::vector<int32_t> reference = words_of(text, options, numbers);
      const auto edits = static_cast<double>(ter_edits(hypothesis, reference));
      fewest = fewest < 0 ? edits : std::min(fewest, edits);
      length += static_cast<double>(reference.size());
    }
    statistics.segments.push_back({fewest, length / static_cast<double>(segment.references.size())});
  });
  return statistics;
}

std::string ter_signature(const std::vector<ReferenceStream>& references, const TerOptions& options) {
  const auto yes = [](bool value) { return value ? "yes" : "no"; };
  return cat("nrefs:", reference_count(references), "|case:", options.case_sensitive ? "mixed" : "lc",
             "|tok:tercom|norm:", yes(options.normalized), "|punct:", yes(!options.no_punct),
             "|asian:", yes(options.asian_support), signature_version());
}

TerScore corpus_ter(const std::vector<std::string>& hypotheses,
                    const std::vector<ReferenceStream>& references, const TerOptions& options) {
  const CorpusStatistics statistics = ter_statistics(hypotheses, references, options);
  const std::vector<double> sums = statistics.sums();
  return {statistics.score(sums), sums[0], sums[1], ter_signature(references, options)};
}

}  // namespace elf
