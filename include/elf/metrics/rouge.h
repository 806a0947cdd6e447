// ROUGE as the package rouge_score 0.1.2 computes it (Lin 2004), figures from 0 to 1.
//
// rouge1, rouge2: clipped overlap of word n-grams. rougeL: longest common subsequence (LCS) of the whole
// texts, newlines being blanks. rougeLsum: texts are split at newlines; for each line of the target the union
// of its LCS with every line of the prediction, each word counted at most as often as it occurs in either
// text. precision = hits / words of the prediction, recall = hits / words of the target. Without a newline in
// either text rougeLsum equals rougeL.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace elf {

struct RougeValue {
  double precision = 0, recall = 0, fmeasure = 0;  // fmeasure: harmonic mean, 0 when both are
};

struct RougeScore {
  RougeValue rouge1, rouge2, rougeL, rougeLsum;
};

enum class RougeTokenizer {
  kDefault,  // the package's: lower-cased runs of a-z and 0-9; other scripts have no tokens at all
  kUnicode,  // not in the package: ICU's words, lower-cased, of any script; marks stay with their letters
};

RougeTokenizer parse_rouge_tokenizer(std::string_view name);  // "default", "unicode"; throws Error (usage)
std::string rouge_tokenizer_name(RougeTokenizer tokenizer);   // "unicode (ICU 72.1 words)": for records

struct RougeOptions {
  bool stemmer = false;  // Porter's, on ASCII words of more than three letters; the published ELF code: true
  RougeTokenizer tokenizer = RougeTokenizer::kDefault;
  bool split_sentences = false;  // rougeLsum also splits lines into sentences (ICU's; the package asks NLTK)
};

std::vector<std::string> rouge_tokens(std::string_view text, const RougeOptions& options = {});

// Scores pair after pair, remembering words and stems. Not for two threads at once.
class RougeScorer {
 public:
  explicit RougeScorer(const RougeOptions& options = {});
  ~RougeScorer();
  RougeScorer(RougeScorer&&) noexcept;

  RougeScore score(std::string_view target, std::string_view prediction);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One pair.
RougeScore rouge(std::string_view target, std::string_view prediction, const RougeOptions& options = {});

// Mean of every figure; zeros for no score at all.
RougeScore mean_rouge(const std::vector<RougeScore>& scores);

// Percentiles of the mean over resamples of the pairs, figure by figure: what the package's
// BootstrapAggregator gives for rouge1, rouge2, rougeL, rougeLsum in this order after numpy.random.seed(seed)
// (the package itself sets no seed).
struct RougeInterval {
  RougeScore low, mid, high;  // percentiles 2.5, 50 and 97.5 for a confidence of 0.95
};
// Throws Error (usage): no score, fewer than 2 resamples, a confidence outside (0, 1).
RougeInterval rouge_interval(const std::vector<RougeScore>& scores, int resamples = 1000,
                             uint32_t seed = 12345, double confidence = 0.95);

}  // namespace elf
