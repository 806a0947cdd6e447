// The solver against Gaussian data, for which the best x-prediction and the flow's end are known in closed
// form: x ~ N(mu, sd^2), z = t x + (1 - t) s eps  =>  E[x | z] = mu + t sd^2 (z - t mu) / (t^2 sd^2 + (1 -
// t)^2 s^2), and the ODE carries s eps to mu + sd eps.
#include "elf/flow/solver.h"

#include <ATen/ATen.h>

#include <cmath>

#include "elf/flow/times.h"
#include "elf/tensor/random.h"
#include "support/golden.h"

namespace elf {
namespace {

constexpr double kMean = 0.7, kDeviation = 0.5, kNoise = 2.0, kNoFloor = 1e-6;

at::Tensor best_x_hat(const at::Tensor& z, const at::Tensor& t_row) {
  const at::Tensor t = t_row.view({-1, 1, 1});
  const at::Tensor variance = t * t * (kDeviation * kDeviation) + (1 - t) * (1 - t) * (kNoise * kNoise);
  return kMean + t * (kDeviation * kDeviation) * (z - t * kMean) / variance;
}

// Largest error of the Euler endpoint, in doubles: the error measured is that of the method.
double endpoint_error(int64_t steps) {
  const at::Tensor eps = normal({3, Purpose::kSampleNoise}, sample_range(0, 4), {5, 6}).to(at::kDouble);
  const std::vector<double> times = time_grid(TimeGrid::kUniform, steps, 0, 1);
  at::Tensor z = kNoise * eps;
  for (int64_t k = 0; k < steps; ++k) {
    const at::Tensor t = at::full({4}, times[k], at::kDouble),
                     t_next = at::full({4}, times[k + 1], at::kDouble);
    z = euler_step(z, best_x_hat(z, t), t, t_next, kNoFloor);
  }
  return (z - (kMean + kDeviation * eps)).abs().max().item<double>();
}

TEST(Euler, ConvergesToTheFlowsEndAtFirstOrder) {
  const double coarse = endpoint_error(64), middle = endpoint_error(128), fine = endpoint_error(256);
  EXPECT_GT(coarse, 1e-4);
  EXPECT_LT(fine, 0.02);
  EXPECT_NEAR(coarse / middle, 2.0, 0.25);
  EXPECT_NEAR(middle / fine, 2.0, 0.15);
}

TEST(Euler, LastStepLandsOnThePrediction) {
  const at::Tensor z = at::ones({2, 3, 4}), x_hat = at::full({2, 3, 4}, 5.0);
  EXPECT_TRUE(test::all_close(euler_step(z, x_hat, at::full({2}, 0.5), at::ones({2}), 0.05), x_hat, 1e-6, 0));
  // Beyond 1 - t_eps the floor holds: (1 - 0.98) / 0.05 of the way.
  EXPECT_TRUE(test::all_close(euler_step(z, x_hat, at::full({2}, 0.98), at::ones({2}), 0.05),
                              at::full({2, 3, 4}, 1.0 + 0.4 * 4.0), 1e-5, 0));
}

TEST(Euler, RowsWalkTheirOwnTimes) {
  const at::Tensor z = normal({1, Purpose::kSampleNoise}, {0, 1}, {3, 4}),
                   x_hat = normal({2, Purpose::kSampleNoise}, {0, 1}, {3, 4});
  const at::Tensor t = at::tensor({0.1, 0.6}, at::kFloat), t_next = at::tensor({0.3, 0.7}, at::kFloat);
  const at::Tensor both = euler_step(z, x_hat, t, t_next, 0.05);
  for (int64_t b = 0; b < 2; ++b) {
    const at::Tensor one = euler_step(z.slice(0, b, b + 1), x_hat.slice(0, b, b + 1), t.slice(0, b, b + 1),
                                      t_next.slice(0, b, b + 1), 0.05);
    EXPECT_TRUE(at::equal(both.slice(0, b, b + 1), one));
  }
}

TEST(BackStep, FollowsItsFormula) {
  const at::Tensor z = at::full({1, 2, 2}, 3.0), eps = at::full({1, 2, 2}, -1.0);
  const auto at_time = [](double t) { return at::full({1}, t); };
  const BackStep back =
      back_step(z, eps, at_time(0.4), at_time(0.6), 1.5, kNoise);  // a = 1 - 1.5 * 0.2 = 0.7
  EXPECT_NEAR(back.t.item<double>(), 0.28, 1e-6);
  EXPECT_TRUE(test::all_close(back.z, at::full({1, 2, 2}, 0.7 * 3.0 - 0.3 * 2.0), 1e-6, 0));
  const BackStep clipped =
      back_step(z, eps, at_time(0.4), at_time(0.6), 50.0, kNoise);  // a = 0: pure noise at t = 0
  EXPECT_EQ(clipped.t.item<double>(), 0.0);
  EXPECT_TRUE(test::all_close(clipped.z, kNoise * eps, 1e-6, 0));
}

TEST(BackStep, WithoutGammaChangesNothing) {
  const at::Tensor z = normal({1, Purpose::kSampleNoise}, {0, 1}, {3, 4});
  const BackStep back = back_step(z, z + 1, at::full({2}, 0.25), at::full({2}, 0.5), 0.0, kNoise);
  EXPECT_TRUE(at::equal(back.z, z));
  EXPECT_TRUE(at::equal(back.t, at::full({2}, 0.25)));
}

// Going back by any amount keeps the distribution on the path: z of time t becomes z of time a t with noise
// level (a (1 - t) s, (1 - a) s).
TEST(BackStep, KeepsTheMeanOnThePath) {
  const at::Tensor x = at::full({1, 2, 2}, 4.0), zero = at::zeros({1, 2, 2});
  const BackStep back = back_step(0.5 * x, zero, at::full({1}, 0.5), at::full({1}, 0.75), 2.0, kNoise);
  EXPECT_TRUE(test::all_close(back.z, back.t.item<double>() * x, 1e-6, 0));
}

}  // namespace
}  // namespace elf
