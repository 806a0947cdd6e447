// Corpus BLEU as sacreBLEU 2.6.0 computes it (Papineni et al. 2002; Post 2018), counts, scores and printed
// line alike.
//
//   BLEU = BP exp(1/N sum_{n=1..N} log p_n),  N = 4
//   BP = min(1, exp(1 - reference length / hypothesis length))
//
// p_n: matched n-grams of the hypotheses, each clipped to its largest count in one reference, over all
// n-grams of the hypotheses, in percent. The reference length is, per segment, that of the reference closest
// in length (the shorter one of two equally close).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "elf/metrics/bleu_tokenizers.h"
#include "elf/metrics/references.h"
#include "elf/metrics/resampling.h"

namespace elf {

// What becomes of an order without a match.
enum class BleuSmoothing {
  kExp,    // 1/(2^k total) for the k-th such order (NIST)
  kFloor,  // smooth_value matches
  kAddK,   // smooth_value added to matches and totals of orders 2 to 4, matched or not
  kNone,
};

BleuSmoothing parse_bleu_smoothing(
    std::string_view name);  // "exp", "floor", "add-k", "none"; throws Error (usage)

struct BleuOptions {
  BleuTokenizer tokenizer = BleuTokenizer::k13a;
  bool lowercase = false;  // the published ELF code scores WMT14 with true
  bool effective_order =
      false;  // leave out orders of which the hypotheses have no n-gram; the published ELF code: true
  BleuSmoothing smoothing = BleuSmoothing::kExp;
  std::optional<double> smooth_value;  // from 0, for floor (none: 0.1) and add-k (none: 1) only
  // In the place of `tokenizer`: a segment's tokens with white space between, and the name that the signature
  // gives it. SentencePiece models come in here.
  std::function<std::string(std::string_view)> custom_tokenizer = {};
  std::string custom_name = {};
};

struct BleuScore {
  double score = 0;                       // 0 to 100
  std::array<double, 4> precisions = {};  // percent, after smoothing; all 0 when nothing matches
  std::array<double, 4> counts = {};      // matched n-grams; add-k included
  std::array<double, 4> totals = {};      // n-grams of the hypotheses; add-k included
  double bp = 1;                          // brevity penalty, 0 to 1
  int64_t sys_len = 0, ref_len = 0;       // tokens
  std::string signature;                  // sacreBLEU's, but for the version field, which names this program
};

// Throws Error (usage): what for_each_segment (references.h) refuses; a negative smoothing value,
// or one that the smoothing does not use.
BleuScore corpus_bleu(const std::vector<std::string>& hypotheses,
                      const std::vector<ReferenceStream>& references, const BleuOptions& options = {});

// The numbers of each segment, for resampling and for scores of single segments: of those only the effective
// order makes sense.
CorpusStatistics bleu_statistics(const std::vector<std::string>& hypotheses,
                                 const std::vector<ReferenceStream>& references,
                                 const BleuOptions& options = {});
std::string bleu_signature(const std::vector<ReferenceStream>& references, const BleuOptions& options);
BleuScore bleu_of_sums(const std::vector<double>& sums, const BleuOptions& options = {});  // no signature

// "BLEU = 26.40 58.1/32.0/20.1/13.2 (BP = 0.983 ratio = 0.983 hyp_len = 61240 ref_len = 62300)"
std::string bleu_line(const BleuScore& score);

}  // namespace elf
