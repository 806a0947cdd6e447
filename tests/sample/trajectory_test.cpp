// Steps as people see them: views, lines, the page.
#include "elf/sample/trajectory.h"

#include <gmock/gmock.h>

#include "elf/base/json.h"
#include "support/golden.h"

namespace elf {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const SentencePieceTokenizer& tokenizer() {
  static const auto loaded = SentencePieceTokenizer::load(test::golden("tokenizer/spiece.model"));
  return loaded;
}

GeneratorStep step_of(std::vector<int64_t> ids, std::vector<float> confidence, std::vector<float> entropy) {
  return {4, 0.5, {std::move(ids)}, {std::move(confidence)}, {std::move(entropy)}};
}

TEST(Trajectory, AViewHasTextTokensAndMeans) {
  const std::vector<int32_t> ids = tokenizer().encode("the and");
  ASSERT_EQ(ids.size(), 2u);
  const StepView view =
      step_view(step_of({ids[0], ids[1]}, {0.5f, 1.0f, 0.75f}, {1.0f, 0.0f, 0.5f}), 0, 7, tokenizer(), {});
  EXPECT_EQ(view.sample, 7);
  EXPECT_EQ(view.step, 5);
  EXPECT_EQ(view.text, "the and");
  ASSERT_EQ(view.tokens.size(), 3u);
  EXPECT_EQ(view.tokens[1].text, " and");
  EXPECT_EQ(view.tokens[2].text, "");  // the end
  EXPECT_DOUBLE_EQ(view.confidence, 0.75);
  EXPECT_DOUBLE_EQ(view.entropy, 0.5);
  const auto json = step_json(view);
  EXPECT_EQ(json.at("index"), 7);
  EXPECT_EQ(json.at("tokens").size(), 3u);
  EXPECT_EQ(json.at("tokens")[0].at("confidence"), 0.5);
}

TEST(Trajectory, IdsOutsideTheTokenizersRangeAreNoCrash) {
  const StepView view = step_view(step_of({1000000, -1}, {0.5f, 0.5f}, {1, 1}), 0, 0, tokenizer(), {});
  EXPECT_EQ(view.text, "");
  EXPECT_EQ(view.tokens.size(), 2u);
}

TEST(Trajectory, ThePageStandsAloneAndHoldsTheSteps) {
  StepView view;
  view.text = "</script><b>&\xff";  // what would end the data, and a byte that is no UTF-8
  view.tokens = {{"</script>", 0.5, 1.0}};
  const std::string page = trajectory_page({step_json(view)}, "runs/verses <1>");
  for (const char* outside : {"http://", "https://", "src=", "@import", "url("})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  const size_t begin = page.find("id=\"data\">") + 10, end = page.find("</script>", begin);
  const auto data = parse_json_or_throw(page.substr(begin, end - begin));
  EXPECT_EQ(data.at("caption"), "runs/verses <1>");
  EXPECT_EQ(data.at("steps")[0].at("text"), "</script><b>&\uFFFD");
  EXPECT_THAT(page.substr(end), HasSubstr("</html>"));
}

}  // namespace
}  // namespace elf
