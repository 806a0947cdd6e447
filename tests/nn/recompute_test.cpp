#include "elf/nn/recompute.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace elf::nn {
namespace {

struct Case {
  at::Tensor x = at::linspace(-1, 1, 12).reshape({3, 4}).requires_grad_();
  at::Tensor w = at::linspace(0.5, 2, 16).reshape({4, 4}).requires_grad_();
  at::Tensor unused = at::ones({2}).requires_grad_();
  int runs = 0;

  at::Tensor part(const at::Tensor& in) {
    ++runs;
    return at::tanh(at::matmul(in, w)) * in.sum();
  }
};

TEST(Recompute, GradientsAreThoseOfThePartItself) {
  Case plain, again;
  const at::Tensor expected = plain.part(plain.x).square().sum();
  const at::Tensor loss =
      recomputed([&](const at::Tensor& in) { return again.part(in); }, again.x, {again.w, again.unused})
          .square()
          .sum();
  EXPECT_TRUE(at::equal(loss, expected));
  EXPECT_EQ(again.runs, 1);
  expected.backward();
  loss.backward();
  EXPECT_EQ(again.runs, 2);
  EXPECT_TRUE(at::equal(again.x.grad(), plain.x.grad()));
  EXPECT_TRUE(at::equal(again.w.grad(), plain.w.grad()));
  EXPECT_FALSE(again.unused.grad().defined());
}

TEST(Recompute, WithoutGradientsItRunsOnce) {
  Case one;
  const at::NoGradGuard no_grad;
  const at::Tensor out = recomputed([&](const at::Tensor& in) { return one.part(in); }, one.x, {one.w});
  EXPECT_FALSE(out.requires_grad());
  EXPECT_EQ(one.runs, 1);
}

}  // namespace
}  // namespace elf::nn
