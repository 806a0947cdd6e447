// The best so far, patience and the entropy floor, across restarts (field case 15).
#include "elf/train/run_state.h"

#include <gtest/gtest.h>

#include <limits>

#include "elf/base/json.h"

namespace elf {
namespace {

using nlohmann::json;

TrainConfig config_of(const std::string& metric, int64_t patience = 0, double floor = 0) {
  TrainConfig config;
  config.best_metric = metric;
  config.patience = patience;
  config.best_min_entropy = floor;
  return config;
}

TEST(BestSoFar, SurvivesARestart) {
  const TrainConfig config = config_of("valid_loss", 3);
  Best before(config);
  EXPECT_TRUE(before.offer(1, {{"valid_loss", 5}}));
  EXPECT_TRUE(before.offer(2, {{"valid_loss", 3}}));
  EXPECT_FALSE(before.offer(3, {{"valid_loss", 4}}));
  Best after(config);
  after.load(parse_json_or_throw(before.to_json().dump()));
  EXPECT_FALSE(after.offer(4, {{"valid_loss", 4}}));
  EXPECT_FALSE(after.out_of_patience());
  EXPECT_FALSE(after.offer(5, {{"valid_loss", 4}}));
  EXPECT_TRUE(after.out_of_patience());
  EXPECT_EQ(after.step(), 2);
  EXPECT_EQ(after.value(), 3);
}

TEST(BestSoFar, DirectionFollowsTheMetric) {
  Best accuracy(config_of("valid_accuracy"));
  EXPECT_TRUE(accuracy.offer(1, {{"valid_accuracy", 0.5}}));
  EXPECT_TRUE(accuracy.offer(2, {{"valid_accuracy", 0.6}}));
  EXPECT_FALSE(accuracy.offer(3, {{"valid_accuracy", 0.55}}));
  EXPECT_TRUE(lower_is_better("gen_ppl"));
  EXPECT_TRUE(lower_is_better("valid_ce_loss"));
  EXPECT_FALSE(lower_is_better("sample_bleu"));
}

TEST(BestSoFar, OtherFiguresDoNotCount) {
  Best best(config_of("sample_bleu", 1));
  EXPECT_FALSE(best.offer(1, {{"valid_loss", 1}}));
  EXPECT_FALSE(best.out_of_patience());
  EXPECT_TRUE(best.offer(2, {{"sample_bleu", 10}}));
}

TEST(BestSoFar, NotFiniteIsNeverBest) {
  Best best(config_of("valid_loss"));
  EXPECT_FALSE(best.offer(1, {{"valid_loss", nullptr}}));
  EXPECT_FALSE(best.offer(2, {{"valid_loss", std::numeric_limits<double>::infinity()}}));
  EXPECT_EQ(best.step(), 0);
  EXPECT_TRUE(best.offer(3, {{"valid_loss", 7}}));
}

// A model that repeats one word has the best perplexity of all.
TEST(BestSoFar, EntropyFloor) {
  Best best(config_of("gen_ppl", 0, 4.0));
  EXPECT_TRUE(best.offer(1, {{"gen_ppl", 50}, {"sample_entropy", 4.5}}));
  EXPECT_FALSE(best.offer(2, {{"gen_ppl", 2}, {"sample_entropy", 0.3}}));
  EXPECT_FALSE(best.offer(3, {{"gen_ppl", 2}}));
  EXPECT_TRUE(best.offer(4, {{"gen_ppl", 40}, {"entropy", 4.1}}));
}

TEST(BestSoFar, AnotherMetricStartsAnew) {
  Best loss(config_of("valid_loss"));
  loss.offer(1, {{"valid_loss", 0.1}});
  Best accuracy(config_of("valid_accuracy"));
  accuracy.load(loss.to_json());
  EXPECT_TRUE(accuracy.offer(2, {{"valid_accuracy", 0.2}}));
}

TEST(RunStateJson, RoundTrip) {
  const RunState state{
      .step = 7, .total_steps = 20, .skipped = 2, .skipped_in_a_row = 1, .trained_seconds = 1.5};
  const RunState read = run_state_of(parse_json_or_throw(to_json(state).dump()));
  EXPECT_EQ(read.step, 7);
  EXPECT_EQ(read.total_steps, 20);
  EXPECT_EQ(read.skipped, 2);
  EXPECT_EQ(read.skipped_in_a_row, 1);
  EXPECT_EQ(read.trained_seconds, 1.5);
}

}  // namespace
}  // namespace elf
