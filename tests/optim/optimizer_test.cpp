// Update rules against golden/optimizer: parameters, averages and buffers after every step within 1e-5
// (absolute and relative).
#include "elf/optim/optimizer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>

#include "elf/base/error.h"
#include "elf/optim/ema.h"
#include "elf/optim/grad_clip.h"
#include "elf/optim/lr_schedule.h"
#include "elf/optim/muon.h"
#include "elf/tensor/random.h"
#include "support/golden.h"

namespace elf {
namespace {

using test::all_close;
using test::golden;
using test::golden_json;

constexpr double kTolerance = 1e-5;

// The parameters of a golden case, with the roles that optimizer.json names.
ParamList golden_params(const nlohmann::json& description, const TensorMap& tensors) {
  ParamList params;
  for (const auto& [name, role] : description.at("roles").items()) {
    const at::Tensor start = tensors.at("init/" + name);
    ParamRef param{name, start.clone().requires_grad_(true)};
    const std::string rule = role.get<std::string>();
    const bool kernel = name == "proj_kernel" || name == "unembed_kernel";  // stored (in, out)
    if (start.dim() == 2) {
      param.fan_in = start.size(kernel ? 0 : 1);
      param.fan_out = start.size(kernel ? 1 : 0);
    }
    if (rule != "adamw") {
      EXPECT_EQ(rule.rfind("muon", 0) == 0, param.is_matrix()) << name;
      EXPECT_EQ(rule == "muon, stored (in, out)", kernel) << name;
    }
    params.push_back(param);
  }
  return params;
}

OptimizerConfig golden_config(const nlohmann::json& description) {
  OptimizerConfig config;
  config.kind = description.at("optimizer") == "adamw" ? OptimizerKind::kAdamW : OptimizerKind::kMuon;
  config.lr = description.at("lr");
  config.schedule = description.at("schedule") == "cosine" ? LrSchedule::kCosine : LrSchedule::kConstant;
  config.min_lr = description.at("min_lr");
  config.weight_decay = description.at("weight_decay");
  config.ema_decay = description.at("ema_decay");
  if (!description.at("betas").is_null()) {
    config.adam_b1 = description.at("betas")[0];
    config.adam_b2 = description.at("betas")[1];
  }
  return config;
}

void set_gradients(const ParamList& params, const TensorMap& tensors, const std::string& prefix) {
  for (const ParamRef& param : params) {
    const auto found = tensors.find(prefix + param.name);
    at::Tensor(param.tensor).mutable_grad() = found == tensors.end() ? at::Tensor() : found->second.clone();
  }
}

class GoldenOptimizer : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenOptimizer, EveryStepAgrees) {
  const nlohmann::json description = golden_json("optimizer/optimizer.json").at(GetParam());
  const TensorMap tensors = read_safetensors(golden("optimizer/" + GetParam() + ".safetensors"));
  const ParamList params = golden_params(description, tensors);
  const OptimizerConfig config = golden_config(description);
  const std::unique_ptr<Optimizer> optimizer = make_optimizer(config, params);
  Ema ema(params, config.ema_decay, false);

  int compared_averages = 0;
  for (const auto& expected : description.at("steps")) {
    const int64_t k = expected.at("step");
    const std::string prefix = cat("step", k, "/");
    set_gradients(params, tensors, prefix + "grad/");
    const double norm = clip_gradients(params, config.grad_clip).item<double>();
    EXPECT_NEAR(norm, expected.at("grad_norm").get<double>(), kTolerance * norm);

    const double lr =
        learning_rate(config, 512, k - 1, description.at("total_steps"), description.at("warmup_steps"));
    EXPECT_NEAR(lr, expected.at("lr_used").get<double>(), 1e-12);
    optimizer->step(lr);
    ema.update();
    for (const ParamRef& param : params) {
      ASSERT_TRUE(all_close(param.tensor, tensors.at(prefix + "param/" + param.name), kTolerance, kTolerance))
          << prefix << param.name;
      const auto average = tensors.find(prefix + "ema/" + param.name);
      if (average == tensors.end()) continue;
      ++compared_averages;
      ASSERT_TRUE(all_close(ema.averages().at(param.name), average->second, kTolerance, kTolerance))
          << prefix << param.name;
    }
  }
  EXPECT_GE(compared_averages, 2 * static_cast<int>(params.size()));
  EXPECT_EQ(optimizer->steps(), static_cast<int64_t>(description.at("steps").size()));

  const TensorMap state = optimizer->state();
  size_t final_tensors = 0;
  for (const auto& [name, tensor] : tensors) final_tensors += name.rfind("final/", 0) == 0;
  EXPECT_EQ(state.size(), final_tensors);
  for (const auto& [name, tensor] : state) {
    const size_t colon = name.find(':');
    const std::string stored = "final/" + name.substr(colon + 1) + "/" + name.substr(0, colon);
    EXPECT_TRUE(all_close(tensor, tensors.at(stored), kTolerance, 1e-7)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenOptimizer,
                         ::testing::Values("muon", "adamw", "muon_missing_gradients"));

// One matrix after another, written out from docs/ALGORITHM.md: the plain reference of the batched form.
at::Tensor plain_newton_schulz(const at::Tensor& x, int64_t iterations) {
  at::Tensor y = x / (x.norm() + 1e-8);
  if (x.size(0) > x.size(1)) y = y.t();
  for (int64_t i = 0; i < iterations; ++i) {
    const at::Tensor a = y.mm(y.t());
    y = 3.4445 * y + (-4.7750 * a + 2.0315 * a.mm(a)).mm(y);
  }
  return x.size(0) > x.size(1) ? y.t() : y;
}

TEST(NewtonSchulz, AgreesWithGoldenForEveryShape) {  // 1e-5
  const TensorMap tensors = read_safetensors(golden("optimizer/newton_schulz.safetensors"));
  int shapes = 0;
  for (const auto& [name, input] : tensors) {
    if (name.size() < 3 || name.substr(name.size() - 3) != "/in") continue;
    const std::string shape = name.substr(0, name.size() - 3);
    for (const int64_t iterations : {1, 5}) {
      const at::Tensor expected = tensors.at(cat(shape, "/out_", iterations));
      EXPECT_TRUE(all_close(newton_schulz(input, iterations), expected, kTolerance, kTolerance))
          << shape << ", " << iterations;
      EXPECT_TRUE(all_close(plain_newton_schulz(input, iterations), expected, kTolerance, kTolerance))
          << shape << ", " << iterations;
    }
    ++shapes;
  }
  EXPECT_EQ(shapes, 8);
}

TEST(NewtonSchulz, BatchEqualsOneByOne) {  // 1e-5
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{12, 30}, {30, 12}, {17, 17}}) {
    const at::Tensor batch = normal({7, Purpose::kInit}, sample_range(0, 5), {rows, columns});
    const at::Tensor result = newton_schulz(batch);
    for (int64_t i = 0; i < 5; ++i)
      EXPECT_TRUE(all_close(result[i], plain_newton_schulz(batch[i], 5), kTolerance, kTolerance));
  }
}

// The stages of the Gram form, panels of symmetric products, wide and tall: 2e-5 of the result's norm against
// float64, on matrices of condition number 1000.
TEST(NewtonSchulz, GramFormKeepsTheAccuracyOfThePlainForm) {
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{400, 1000}, {1000, 400}, {450, 450}, {64, 700}}) {
    const int64_t rank = std::min(rows, columns);
    const auto basis = [&](uint64_t seed, int64_t size) {
      return std::get<0>(at::linalg_qr(normal({seed, Purpose::kInit}, {0}, {size, rank})[0].to(at::kDouble)));
    };
    const at::Tensor values = at::logspace(0, -3, rank, 10.0, at::kDouble);
    const at::Tensor x = (basis(1, rows) * values).mm(basis(2, columns).t());
    const at::Tensor exact = plain_newton_schulz(x, 5), x32 = x.to(at::kFloat);
    const auto error = [&](const at::Tensor& result) {
      return ((result.to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
    };
    EXPECT_LT(error(newton_schulz(x32)), 2e-5) << rows << " x " << columns;
    EXPECT_LT(error(plain_newton_schulz(x32, 5)), 2e-5) << rows << " x " << columns;
    at::Tensor target = at::ones({rows, columns});
    add_newton_schulz(target, x32, -0.5);
    EXPECT_LT(error((1 - target) * 2), 2e-5) << rows << " x " << columns;
  }
}

// Singular values of zero: what rounding makes of them grows 485 times in five iterations, in the plain form
// as well. 3e-4 of the norm.
TEST(NewtonSchulz, GramFormOfARankOneMatrix) {
  const at::Tensor x =
      at::outer(normal({1, Purpose::kInit}, {0}, {200})[0], normal({2, Purpose::kInit}, {0}, {500})[0]);
  const at::Tensor exact = plain_newton_schulz(x.to(at::kDouble), 5);
  for (const at::Tensor& result : {newton_schulz(x), newton_schulz(x.t()).t()})
    EXPECT_LT(((result.to(at::kDouble) - exact).norm() / exact.norm()).item<double>(), 3e-4);
}

TEST(NewtonSchulz, ZeroStaysZero) {
  EXPECT_TRUE(at::equal(newton_schulz(at::zeros({3, 9})), at::zeros({3, 9})));
}

// Momentum, look-ahead and update of a matrix large enough for a thread of its own, written out from
// docs/ALGORITHM.md; one matrix has no gradient. 2e-5.
TEST(Muon, LargeMatricesUpdateAsWrittenOut) {
  const at::Tensor start = normal({1, Purpose::kInit}, sample_range(0, 3), {150, 120});
  const at::Tensor gradients = normal({2, Purpose::kInit}, sample_range(0, 6), {150, 120});
  ParamList params;
  for (int64_t i = 0; i < 3; ++i)
    params.push_back({cat("m", i), start[i].clone().requires_grad_(true), 120, 150});
  Muon muon(params, 0.9);
  std::vector<at::Tensor> weights = start.unbind(), momenta = at::zeros_like(start).unbind();
  for (int k = 1; k <= 2; ++k) {
    for (int64_t i = 0; i < 3; ++i) {
      const at::Tensor g = i == 2 ? at::zeros({150, 120}) : gradients[2 * i + k - 1];
      params[i].tensor.mutable_grad() = i == 2 ? at::Tensor() : g.clone();
      momenta[i] = 0.9 * momenta[i] + 0.1 * g;
      const at::Tensor u = 0.9 * momenta[i] / (1 - std::pow(0.9, k + 1)) + 0.1 * g / (1 - std::pow(0.9, k));
      weights[i] = weights[i] - 0.1 * std::sqrt(150.0 / 120) * plain_newton_schulz(u, 5);
    }
    muon.step(0.1);
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_TRUE(all_close(params[i].tensor, weights[i], 2e-5, 2e-5)) << "step " << k << ", matrix " << i;
  }
}

TEST(Muon,
     GroupsOfEqualShapesUpdateAsSingleMatrices) {  // 1e-6: the same matrices in one optimiser and in one each
  const at::Tensor start = normal({1, Purpose::kInit}, sample_range(0, 6), {6, 10});
  const at::Tensor gradients = normal({2, Purpose::kInit}, sample_range(0, 6), {6, 10});
  const auto make_param = [&](int64_t i) {
    // Two meanings of one storage shape: stored (out, in) and stored (in, out) have different scales.
    ParamRef param{cat("m", i), start[i].clone().requires_grad_(true), i % 2 ? 6 : 10, i % 2 ? 10 : 6};
    param.tensor.mutable_grad() = gradients[i].clone();
    return param;
  };
  ParamList together;
  for (int64_t i = 0; i < 6; ++i) together.push_back(make_param(i));
  Muon all(together, 0.95);
  all.step(0.1);
  all.step(0.1);
  for (int64_t i = 0; i < 6; ++i) {
    const ParamRef alone = make_param(i);
    Muon single({alone}, 0.95);
    single.step(0.1);
    single.step(0.1);
    EXPECT_TRUE(all_close(together[i].tensor, alone.tensor, 1e-6, 1e-6)) << i;
    EXPECT_FALSE(all_close(together[i].tensor, start[i], 1e-3, 1e-3)) << i;
  }
}

ParamList small_params() {
  ParamList params{{"matrix", at::ones({3, 4}).requires_grad_(true), 4, 3},
                   {"bias", at::ones({3}).requires_grad_(true)}};
  for (ParamRef& param : params) param.tensor.mutable_grad() = at::full_like(param.tensor.detach(), 0.5);
  return params;
}

TEST(OptimizerState, SavedAndLoadedContinuesBitwise) {
  for (const OptimizerKind kind : {OptimizerKind::kMuon, OptimizerKind::kAdamW}) {
    OptimizerConfig config;
    config.kind = kind;
    const ParamList a = small_params(), b = small_params();
    const auto first = make_optimizer(config, a), second = make_optimizer(config, b);
    first->step(0.1);
    first->step(0.1);
    at::NoGradGuard no_grad;
    for (size_t i = 0; i < a.size(); ++i) at::Tensor(b[i].tensor).copy_(a[i].tensor);
    second->load_state(first->state(), first->steps());
    EXPECT_EQ(second->steps(), 2);
    first->step(0.1);
    second->step(0.1);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i].tensor, b[i].tensor)) << a[i].name;
  }
}

TEST(OptimizerState, ListsEverythingThatDoesNotFit) {
  const ParamList params = small_params();
  const auto optimizer = make_optimizer({}, params);
  TensorMap state;
  for (const auto& [name, tensor] : optimizer->state()) state[name] = tensor.clone();
  state.erase("bias:exp_avg");
  state["nobody:exp_avg"] = at::zeros({1});
  state["matrix:momentum_buffer"] = at::zeros({4, 3});
  try {
    optimizer->load_state(state, 1);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("missing: bias:exp_avg"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("unexpected: nobody:exp_avg"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("matrix:momentum_buffer is [4, 3], expected [3, 4]"));
  }
  EXPECT_EQ(optimizer->steps(), 0);
}

TEST(OptimizerState, NamesAreThoseOfThePublishedCheckpoint) {
  const TensorMap published = read_safetensors(golden("elf_tiny/opt_state.safetensors"));
  const TensorMap weights = read_safetensors(golden("elf_tiny/params.safetensors"));
  ParamList params;
  for (const auto& [name, tensor] : weights) {
    ParamRef param{name, tensor.clone().requires_grad_(true)};
    if (tensor.dim() == 2) param.fan_in = tensor.size(1), param.fan_out = tensor.size(0);
    params.push_back(param);
  }
  const auto optimizer = make_optimizer({}, params);
  optimizer->load_state(published, 2);
  for (const auto& [name, tensor] : optimizer->state())
    EXPECT_TRUE(at::equal(tensor, published.at(name))) << name;
}

}  // namespace
}  // namespace elf
