// Muon's work divided among ranks gives what one rank gives (field case 30): any number of matrices, tall,
// wide, single rows, an all-zero gradient.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "elf/optim/optimizer.h"
#include "support/thread_ranks.h"

namespace elf {
namespace {

ParamList parameters() {
  ParamList list;
  const auto add = [&](const std::string& name, std::vector<int64_t> shape, bool matrix) {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    const at::Tensor value =
        at::sin(at::arange(count).to(at::kFloat) * 0.7 + static_cast<double>(list.size())).reshape(shape);
    list.push_back({name, value.requires_grad_(), matrix ? shape[1] : 0, matrix ? shape[0] : 0});
  };
  add("a", {4, 4}, true);
  add("b", {8, 2}, true);
  add("c", {2, 8}, true);
  add("d", {1, 6}, true);
  add("e", {7, 5}, true);
  for (int i = 0; i < 5; ++i) add("same" + std::to_string(i), {4, 4}, true);
  add("bias", {7}, false);
  add("embedding", {1, 3, 4}, false);
  return list;
}

void set_gradients(const ParamList& list, int step) {
  for (const ParamRef& param : list) {
    at::Tensor gradient = at::cos(param.tensor.detach() * (3.0 + step));
    if (param.name == "e") gradient.zero_();
    param.tensor.mutable_grad() = gradient;
  }
}

ParamList after_five_steps(Ranks* ranks) {
  const ParamList list = parameters();
  const auto optimizer = make_optimizer({}, list, ranks);
  for (int step = 0; step < 5; ++step) {
    set_gradients(list, step);
    optimizer->step(0.02);
  }
  return list;
}

TEST(DividedMuon, EqualsTheUndividedOne) {
  const ParamList expected = after_five_steps(nullptr);
  for (const int64_t count : {2, 4}) {
    test::on_ranks(count, [&](Ranks& ranks) {
      const ParamList found = after_five_steps(&ranks);
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_TRUE(at::isfinite(found[i].tensor).all().item<bool>()) << found[i].name;
        EXPECT_TRUE(at::allclose(found[i].tensor, expected[i].tensor, 1e-5, 1e-6))
            << found[i].name << " on " << count << " ranks";
      }
    });
  }
}

}  // namespace
}  // namespace elf
