// What goes up to a device, and how.
#include "elf/tensor/device.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

namespace elf {
namespace {

TEST(Upload, OnTheCpuATensorIsItself) {
  const at::Tensor host = at::arange(6);
  EXPECT_EQ(upload(host, at::kCPU).data_ptr(), host.data_ptr());
  EXPECT_FALSE(upload(at::Tensor(), at::kCPU).defined());
}

// Each copy must be of what the tensor held when it was handed over, however the memory in between is used
// again.
TEST(Upload, ManyCopiesInARowArriveWhole) {
  const at::Device device = parse_device("auto");
  if (!device.is_cuda()) GTEST_SKIP() << "no CUDA device";
  EXPECT_FALSE(upload(at::Tensor(), device).defined());
  std::vector<at::Tensor> there;
  for (int64_t i = 0; i < 50; ++i) there.push_back(upload(at::full({1 << 18}, i), device));
  for (int64_t i = 0; i < 50; ++i) {
    EXPECT_TRUE(there[static_cast<size_t>(i)].is_cuda());
    EXPECT_TRUE(there[static_cast<size_t>(i)].eq(i).all().item<bool>()) << i;
  }
}

}  // namespace
}  // namespace elf
