#include "elf/sample/candidates.h"

#include <algorithm>

#include "elf/base/error.h"
#include "elf/metrics/bleu.h"
#include "elf/metrics/rouge.h"

namespace elf {
namespace {

double score(const std::string& hypothesis, const std::string& reference, CandidateMeasure measure) {
  if (hypothesis == reference) return 1.0;
  if (measure == CandidateMeasure::kRouge) return rouge(reference, hypothesis).rougeL.fmeasure;
  return corpus_bleu({hypothesis}, {{reference}}, {.effective_order = true}).score / 100.0;
}

}  // namespace

CandidateMeasure parse_candidate_measure(std::string_view name, std::string_view option) {
  if (name == "bleu") return CandidateMeasure::kBleu;
  if (name == "rouge") return CandidateMeasure::kRouge;
  usage_error(option, ": found '", name, "', expected bleu or rouge");
}

CandidateChoice choose_candidate(const std::vector<std::string>& candidates, CandidateMeasure measure) {
  if (candidates.empty()) usage_error("minimum Bayes risk: no candidate to choose from");
  CandidateChoice choice;
  for (size_t i = 0; i < candidates.size(); ++i) {
    double sum = candidates.size() == 1 ? 1.0 : 0.0;
    for (size_t k = 0; k < candidates.size(); ++k) {
      if (k != i) sum += score(candidates[i], candidates[k], measure);
    }
    choice.utilities.push_back(sum / static_cast<double>(std::max<size_t>(1, candidates.size() - 1)));
  }
  const auto best = std::max_element(choice.utilities.begin(), choice.utilities.end());
  choice.chosen = static_cast<size_t>(best - choice.utilities.begin());
  return choice;
}

}  // namespace elf
