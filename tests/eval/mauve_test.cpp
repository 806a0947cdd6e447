// MAUVE against the package mauve-text (golden/eval/mauve.json, made by tests/oracle/eval_mauve.py): its
// histograms exactly into scores; its features into the same clusters where they are well apart.
#include "mauve.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "support/errors.h"
#include "support/golden.h"

namespace elf {
namespace {

using nlohmann::json;

at::Tensor features_of(const json& rows) {
  at::Tensor features = at::empty({static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size())});
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t k = 0; k < rows[i].size(); ++k)
      features[static_cast<int64_t>(i)][static_cast<int64_t>(k)] = rows[i][k].get<double>();
  }
  return features;
}

TEST(Mauve, ScoresOfThePackagesHistograms) {
  const json cases = test::golden_json("eval/mauve.json")["cases"];
  for (const json& example : cases) {
    const MauveScore score = mauve_of_counts(example["p_counts"].get<std::vector<double>>(),
                                             example["q_counts"].get<std::vector<double>>());
    EXPECT_NEAR(score.mauve, example["mauve"].get<double>(), 1e-6) << example["name"];
    EXPECT_NEAR(score.mauve_star, example["mauve_star"].get<double>(), 1e-6) << example["name"];
    EXPECT_NEAR(score.frontier_integral, example["frontier_integral"].get<double>(), 1e-6) << example["name"];
  }
}

TEST(Mauve, ScoresOfThePackagesFeatures) {
  if (!mauve_is_built_in()) GTEST_SKIP() << "built without faiss";
  const json cases = test::golden_json("eval/mauve.json")["cases"];
  for (const json& example : cases) {
    MauveOptions options;
    options.clusters = example["clusters"].get<int64_t>();
    const Mauve result = mauve(features_of(example["p"]), features_of(example["q"]), options);
    EXPECT_NEAR(result.score.mauve, example["mauve"].get<double>(), 1e-4) << example["name"];
    EXPECT_NEAR(result.score.mauve_star, example["mauve_star"].get<double>(), 1e-4) << example["name"];
  }
}

TEST(Mauve, OfASetWithItselfIsOne) {
  EXPECT_NEAR(mauve_of_counts({3, 4, 5}, {3, 4, 5}).mauve, 1, 1e-9);
  EXPECT_NEAR(mauve_of_counts({12, 8}, {12, 8}).mauve, 1, 1e-9);
  EXPECT_NEAR(mauve_of_counts({1, 1}, {1, 1}).mauve, 1, 1e-9);
  EXPECT_NEAR(mauve_of_counts({3, 0}, {0, 5}).frontier_integral, 1, 1e-9);
  EXPECT_LT(mauve_of_counts({3, 0}, {0, 5}).mauve, 0.01);
}

TEST(Mauve, RefusesTooLittle) {
  EXPECT_THROW(mauve_of_counts({1, 2}, {1}), Error);
  EXPECT_THROW(mauve_of_counts({0, 0}, {1, 1}), Error);
  EXPECT_THAT(test::usage_message([] {
                mauve(at::zeros({1, 3}), at::zeros({4, 3}));
              }),
              testing::HasSubstr("1 and 4 texts, expected two or more of each set"));
}

TEST(Mauve, FeaturesDoNotDependOnTheBatch) {
  const Gpt2 scorer = Gpt2::load(test::golden("eval/gpt2_model"), at::kCPU);
  const Gpt2Tokenizer tokenizer =
      Gpt2Tokenizer::load(std::filesystem::path(ELF_TEST_DIR).parent_path() / "data" / "gpt2");
  const std::vector<std::string> texts = {"one", "a much longer text than that", "", "two three"};
  const at::Tensor together = mauve_features(scorer, tokenizer, texts, 4, 8);
  ASSERT_EQ(together.size(0), 3);
  EXPECT_TRUE(
      test::all_close(together[2], mauve_features(scorer, tokenizer, {"two three"}, 4, 1)[0], 1e-5, 1e-5));
  EXPECT_TRUE(test::all_close(together[1], mauve_features(scorer, tokenizer, {"a much longer text"}, 4, 1)[0],
                              1e-5, 1e-5));
}

}  // namespace
}  // namespace elf
