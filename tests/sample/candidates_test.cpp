// The choice among candidates, against utilities worked out here from the metrics themselves.
#include "elf/sample/candidates.h"

#include <gmock/gmock.h>

#include "elf/metrics/bleu.h"
#include "elf/metrics/rouge.h"
#include "support/errors.h"

namespace elf {
namespace {

using ::testing::HasSubstr;

TEST(Candidates, TheOneClosestToTheOthersIsChosen) {
  const std::vector<std::string> texts = {"a dog ran over the hill", "the cat sat on the mat",
                                          "the cat sat on a mat", "a cat sat on the mat"};
  for (const CandidateMeasure measure : {CandidateMeasure::kBleu, CandidateMeasure::kRouge}) {
    const CandidateChoice choice = choose_candidate(texts, measure);
    ASSERT_EQ(choice.utilities.size(), 4u);
    EXPECT_EQ(choice.chosen, 1u);
    for (const double utility : choice.utilities) EXPECT_LE(utility, choice.utilities[1]);
    EXPECT_LT(choice.utilities[0], choice.utilities[1]);
  }
}

TEST(Candidates, UtilitiesAreMeansOverTheOthers) {
  const std::vector<std::string> texts = {"one two three four", "one two three five", "six seven"};
  const CandidateChoice bleu = choose_candidate(texts, CandidateMeasure::kBleu);
  const CandidateChoice by_rouge = choose_candidate(texts, CandidateMeasure::kRouge);
  double bleu_sum = 0, rouge_sum = 0;
  for (const size_t other : {1u, 2u}) {
    bleu_sum += corpus_bleu({texts[0]}, {{texts[other]}}, {.effective_order = true}).score / 100;
    rouge_sum += rouge(texts[other], texts[0]).rougeL.fmeasure;
  }
  EXPECT_NEAR(bleu.utilities[0], bleu_sum / 2, 1e-12);
  EXPECT_NEAR(by_rouge.utilities[0], rouge_sum / 2, 1e-12);
}

TEST(Candidates, TiesGoToTheFirstAndEmptyTextsAgree) {
  EXPECT_EQ(choose_candidate({"x y", "x y"}, CandidateMeasure::kBleu).chosen, 0u);
  const CandidateChoice empty = choose_candidate({"lonely words", "", ""}, CandidateMeasure::kRouge);
  EXPECT_EQ(empty.chosen, 1u);
  EXPECT_DOUBLE_EQ(empty.utilities[1], 0.5);
  EXPECT_EQ(choose_candidate({"alone"}, CandidateMeasure::kBleu).utilities, (std::vector<double>{1.0}));
}

TEST(Candidates, SayWhatIsWrong) {
  EXPECT_THAT(test::usage_message([] { choose_candidate({}, CandidateMeasure::kBleu); }),
              HasSubstr("no candidate"));
  EXPECT_THAT(test::usage_message([] { parse_candidate_measure("ter", "--choose"); }),
              HasSubstr("--choose: found 'ter'"));
}

}  // namespace
}  // namespace elf
