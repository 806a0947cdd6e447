#include "elf/tensor/random.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace elf {
namespace {

constexpr Stream kStream{42, Purpose::kNoise, 7};

TEST(Random, RowDependsOnItsSampleOnly) {
  const at::Tensor all = normal(kStream, sample_range(0, 10), {5, 3});
  const at::Tensor some = normal(kStream, {7, 2}, {5, 3});
  EXPECT_TRUE(at::equal(some[0], all[7]));
  EXPECT_TRUE(at::equal(some[1], all[2]));
}

TEST(Random, StreamsDiffer) {
  const at::Tensor base = uniform(kStream, {0}, {100});
  EXPECT_FALSE(at::equal(base, uniform({43, Purpose::kNoise, 7}, {0}, {100})));
  EXPECT_FALSE(at::equal(base, uniform({42, Purpose::kTime, 7}, {0}, {100})));
  EXPECT_FALSE(at::equal(base, uniform({42, Purpose::kNoise, 8}, {0}, {100})));
}

TEST(Random, NormalHasItsMoments) {
  const at::Tensor x = normal(kStream, sample_range(0, 1000), {1000}).to(at::kDouble);
  EXPECT_NEAR(x.mean().item<double>(), 0.0, 4e-3);
  EXPECT_NEAR(x.std().item<double>(), 1.0, 3e-3);
  EXPECT_NEAR(x.pow(4).mean().item<double>(), 3.0, 0.04);
  EXPECT_LT(x.abs().max().item<double>(), 7.0);
}

TEST(Random, UniformIsHalfOpenAndEven) {
  const at::Tensor x = uniform(kStream, sample_range(0, 1000), {1000});
  EXPECT_GE(x.min().item<float>(), 0.0f);
  EXPECT_LT(x.max().item<float>(), 1.0f);
  EXPECT_NEAR(x.to(at::kDouble).mean().item<double>(), 0.5, 2e-3);
  EXPECT_NEAR(x.to(at::kDouble).var().item<double>(), 1.0 / 12, 1e-3);
}

TEST(Random, LeavesTheGlobalGeneratorAlone) {
  at::manual_seed(1);
  const at::Tensor expected = at::rand({4});
  at::manual_seed(1);
  normal(kStream, {0, 1}, {64});
  EXPECT_TRUE(at::equal(at::rand({4}), expected));
}

}  // namespace
}  // namespace elf
