// Golden files and how close two tensors are.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/tensor/safetensors.h"

namespace elf::test {

// The environment's ELF_TEST_DIR says where the tests' folder is on another machine (scripts/bundle.sh).
inline std::filesystem::path golden(const std::string& name) {
  const char* moved = std::getenv("ELF_TEST_DIR");
  return std::filesystem::path(moved ? moved : ELF_TEST_DIR) / "golden" / name;
}

inline nlohmann::json golden_json(const std::string& name) {
  return parse_json_or_throw(read_file(golden(name)));
}

// |actual - expected| <= atol + rtol |expected| everywhere; says where it is worst.
inline ::testing::AssertionResult all_close(const at::Tensor& actual, const at::Tensor& expected, double rtol,
                                            double atol) {
  if (!actual.defined() || !expected.defined()) return ::testing::AssertionFailure() << "undefined tensor";
  if (actual.sizes() != expected.sizes()) {
    return ::testing::AssertionFailure() << "shape " << actual.sizes() << ", expected " << expected.sizes();
  }
  if (actual.numel() == 0) return ::testing::AssertionSuccess();
  const at::Tensor a = actual.detach().to(at::kCPU, at::kDouble).reshape({-1});
  const at::Tensor e = expected.detach().to(at::kCPU, at::kDouble).reshape({-1});
  const at::Tensor excess = (a - e).abs() - (atol + rtol * e.abs());
  const int64_t worst = excess.nan_to_num(1e30).argmax().item<int64_t>();
  const double over = excess[worst].item<double>();
  if (over <= 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "at flat index " << worst << ": " << a[worst].item<double>() << ", expected "
         << e[worst].item<double>() << " (rtol " << rtol << ", atol " << atol << ")";
}

// Every entry within `share` of the largest entry of `expected`: the tolerance for gradients.
inline ::testing::AssertionResult close_to_largest(const at::Tensor& actual, const at::Tensor& expected,
                                                   double share) {
  const double largest = expected.numel() == 0 ? 0.0 : expected.abs().max().item<double>();
  return all_close(actual, expected, 0.0, share * largest + 1e-12);
}

}  // namespace elf::test
