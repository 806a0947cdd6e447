#include "elf/dist/ranks.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "elf/base/error.h"
#include "elf/dist/gradient_sync.h"
#include "support/thread_ranks.h"

namespace elf {
namespace {

using test::on_ranks;
using ::testing::HasSubstr;

TEST(Ranks, SumsAreTheSameEverywhere) {
  std::vector<std::vector<double>> sums(3);
  on_ranks(3, [&](Ranks& ranks) {
    const double mine = ranks.rank() == 0 ? 1e16 : 1.0;  // the order of addition shows
    sums[static_cast<size_t>(ranks.rank())] = ranks.sum({mine, static_cast<double>(ranks.rank())});
  });
  EXPECT_EQ(sums[0], (std::vector<double>{1e16 + 1.0 + 1.0, 3}));
  EXPECT_EQ(sums[1], sums[0]);
  EXPECT_EQ(sums[2], sums[0]);
}

TEST(Ranks, ReceiveFromTheFirst) {
  on_ranks(3, [](Ranks& ranks) {
    const auto rank = static_cast<double>(ranks.rank());
    EXPECT_EQ(ranks.of_first(rank + 7), 7);
    EXPECT_EQ(ranks.of_first(ranks.first() ? std::string("text\0!", 6) : "no"), std::string("text\0!", 6));
    EXPECT_EQ(ranks.of_first(std::string()), "");
    const at::Tensor whole = at::full({4, 6}, rank), part = whole.transpose(0, 1).narrow(0, 1, 2);
    ranks.of_first(part);  // not contiguous
    EXPECT_TRUE(at::equal(part, at::zeros({2, 4}))) << part;
  });
}

TEST(Ranks, GatherByRank) {
  on_ranks(4, [](Ranks& ranks) {
    const at::Tensor all = ranks.gather(at::full({2, 3}, static_cast<double>(ranks.rank())));
    ASSERT_EQ(all.sizes(), (std::vector<int64_t>{8, 3}));
    for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(all[i][0].item<double>(), static_cast<double>(i / 2));
  });
}

TEST(Ranks, WorkOfTheFirstRankAloneIsNamedWhenItIsLate) {
  std::atomic<bool> timed_out{false};
  const auto work = [&] {
    for (int i = 0; i < 600 && !timed_out; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  };
  on_ranks(2,
           [&](Ranks& ranks) {
             if (ranks.first()) return ranks.first_does("save", work);
             try {
               ranks.first_does("save", work);
               ADD_FAILURE() << "did not time out";
             } catch (const Error& error) {
               EXPECT_THAT(error.what(), HasSubstr("'save on rank 0', at most 1 s"));
               EXPECT_EQ(error.exit_code(), 1);
               timed_out = true;
               ranks.sum({0});  // what it would have done had it waited on
             }
           },
           {.collective = 120, .first_rank = 1});
}

// Gradients of several backward passes, summed over ranks; a parameter that a rank's last pass leaves out, or
// that no rank used.
TEST(GradientSync, SumsOverPassesAndRanks) {
  on_ranks(3, [](Ranks& ranks) {
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
  for (const int64_t count : {1, 2}) {
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
      on_ranks(count, body);
    }
  }
}

}  // namespace
}  // namespace elf
