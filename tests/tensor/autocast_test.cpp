#include "elf/tensor/autocast.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace elf {
namespace {

at::ScalarType product_type() {
  const at::Tensor a = at::ones({4, 4});
  return at::matmul(a, a).scalar_type();
}

TEST(Bfloat16, OnlyInsideTheScope) {
  EXPECT_EQ(product_type(), at::kFloat);
  {
    const Bfloat16Scope scope(at::kCPU, true);
    EXPECT_EQ(product_type(), at::kBFloat16);
    {
      const Bfloat16Scope inner(at::kCPU, true);
      EXPECT_EQ(product_type(), at::kBFloat16);
    }
    EXPECT_EQ(product_type(), at::kBFloat16);
    const Bfloat16Scope off(at::kCPU, false);
    EXPECT_EQ(product_type(), at::kBFloat16);
  }
  EXPECT_EQ(product_type(), at::kFloat);
}

TEST(Bfloat16, EndsWithAnException) {
  try {
    const Bfloat16Scope scope(at::kCPU, true);
    throw std::runtime_error("out");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(product_type(), at::kFloat);
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

// A forward without gradients comes before the one with gradients in every training step: the cast of a weight
// that the first made must not cut the second off from the weight.
TEST(Bfloat16, APassWithoutGradientsDoesNotHideTheWeight) {
  const at::Tensor weight = at::ones({4, 4}).requires_grad_();
  const at::Tensor x = at::ones({2, 4});
  {
    const at::NoGradGuard no_grad;
    const Bfloat16Scope scope(at::kCPU, true);
    at::matmul(x, weight);
  }
  at::Tensor out;
  {
    const Bfloat16Scope scope(at::kCPU, true);
    out = at::matmul(x, weight);
  }
  out.to(at::kFloat).sum().backward();
  ASSERT_TRUE(weight.grad().defined());
  EXPECT_EQ(weight.grad().scalar_type(), at::kFloat);
  EXPECT_TRUE(at::allclose(weight.grad(), at::full({4, 4}, 2.0)));
}

}  // namespace
}  // namespace elf
