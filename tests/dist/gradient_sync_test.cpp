#include "elf/dist/gradient_sync.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "support/test_ranks.h"

namespace elf {
namespace {

using test::on_forked_ranks;

// Gradients of several backward passes, summed over ranks; a parameter that a rank's last pass leaves out, or
// that no rank used.
TEST(GradientSync, SumsOverPassesAndRanks) {
  on_forked_ranks(3, [](Ranks& ranks) {
    const at::Tensor a = at::ones({2, 3}).requires_grad_(), b = at::ones({5}).requires_grad_(),
                     unused = at::ones({4}).requires_grad_();
    GradientSync sync(ranks, {a, b, unused});
    for (int step = 0; step < 3; ++step) {
      for (const at::Tensor& parameter : {a, b, unused}) parameter.mutable_grad().reset();
      const auto rank = static_cast<double>(ranks.rank());
      sync.backward(b.sum() * (rank + 1), false);  // b takes part in the first pass only
      EXPECT_FALSE(b.grad().defined());
      sync.backward(a.sum() * (10 * rank), true);
      EXPECT_TRUE(at::equal(a.grad(), at::full({2, 3}, 30.0))) << a.grad();
      EXPECT_TRUE(at::equal(b.grad(), at::full({5}, 6.0))) << b.grad();
      EXPECT_TRUE(!unused.grad().defined() || unused.grad().abs().sum().item<double>() == 0);
    }
  });
}

// 1 + 1e-8 - 1: lost in float32, kept here, on one rank and on two.
TEST(GradientSync, AddsInFloat64) {
  for (const int64_t count : {2, 1}) {  // alone last: that computes in this process
    const auto body = [&](Ranks& ranks) {
      const at::Tensor a = at::ones({3}).requires_grad_();
      GradientSync sync(ranks, {a});
      std::vector<double> parts = {1, 1e-8, -1, 1e-8};
      if (count == 2) parts = ranks.first() ? std::vector<double>{1, 1e-8} : std::vector<double>{-1, 1e-8};
      for (size_t i = 0; i < parts.size(); ++i) sync.backward(a.sum() * parts[i], i + 1 == parts.size());
      EXPECT_TRUE(at::allclose(a.grad(), at::full({3}, 2e-8), 1e-6, 0)) << a.grad() << " on " << count;
      EXPECT_EQ(a.grad().scalar_type(), at::kFloat);
    };
    if (count == 1) {
      Ranks alone;
      body(alone);
    } else {
      on_forked_ranks(count, body);
    }
  }
}

}  // namespace
}  // namespace elf
