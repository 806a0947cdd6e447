// What model.conditioning, prediction, bottleneck_dim and latent_dim make of the network.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "elf/base/error.h"
#include "elf/model/elf_net.h"
#include "elf/model/flops.h"
#include "elf/model/weight_map.h"
#include "elf/tensor/random.h"
#include "support/golden.h"
#include "support/tiny_networks.h"

namespace elf {
namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;

Shapes shapes_of(const ModelConfig& config) {
  Shapes shapes;
  for (const WeightSpec& spec : weight_specs(config)) shapes[spec.name] = spec.shape;
  return shapes;
}

// Names of the weights whose shape is not that of the golden network, or that one of the two does not have.
std::set<std::string> changed_by(const std::function<void(ModelConfig&)>& change) {
  ModelConfig config = test::tiny_config("full");
  const Shapes before = shapes_of(config);
  change(config);
  const Shapes after = shapes_of(config);
  std::set<std::string> names;
  for (const auto& [name, shape] : before) {
    if (!after.contains(name) || after.at(name) != shape) names.insert(name);
  }
  for (const auto& [name, shape] : after) {
    if (!before.contains(name)) names.insert(name);
  }
  return names;
}

// Each knob of the network changes the weights that it is about, and no others.
TEST(Variants, ChangeTheirOwnWeightsOnly) {
  using Names = std::set<std::string>;
  EXPECT_EQ(changed_by([](ModelConfig& c) { c.bottleneck_dim *= 2; }),
            (Names{"text_proj.proj1.weight", "text_proj.proj2.weight"}));
  EXPECT_EQ(
      changed_by([](ModelConfig& c) { c.latent_dim *= 2; }),
      (Names{"final_layer.linear.bias", "final_layer.linear.weight", "proj_bias", "proj_kernel",
             "self_cond_proj.bias", "self_cond_proj.weight", "text_proj.proj1.weight", "unembed_kernel"}));
  EXPECT_EQ(changed_by([](ModelConfig& c) { c.prediction = Prediction::kEpsilon; }), Names{});
  Names modulated = {"t_emb_tokens",
                     "self_cond_cfg_tokens",
                     "mode_tokens",
                     "mode_embedding",
                     "final_layer.adaLN_modulation.weight",
                     "final_layer.adaLN_modulation.bias"};
  for (int64_t i = 0; i < test::tiny_config("full").depth; ++i) {
    modulated.insert(cat("blocks.", i, ".adaLN_modulation.weight"));
    modulated.insert(cat("blocks.", i, ".adaLN_modulation.bias"));
  }
  EXPECT_EQ(changed_by([](ModelConfig& c) { c.conditioning = Conditioning::kAdaLnZero; }), modulated);
}

ModelConfig adaln_config() {
  ModelConfig config = test::tiny_config("full");
  config.conditioning = Conditioning::kAdaLnZero;
  return config;
}

DenoiserInput random_input(const ModelConfig& config, int64_t rows) {
  const auto draw = [&](Purpose purpose) {
    return normal({3, purpose}, sample_range(0, rows), {config.max_length, config.latent_dim});
  };
  DenoiserInput input;
  input.z = draw(Purpose::kNoise);
  input.self_cond = draw(Purpose::kDecodeNoise);
  input.t = at::linspace(0.1, 0.9, rows);
  input.w = at::linspace(1, 3, rows);
  input.mode = at::zeros({rows});
  return input;
}

// All gates are zero at the start: every block hands on what it was given, and t, w and the mode change
// nothing.
TEST(AdaLnZero, IsTheIdentityAtInitialisation) {
  const ModelConfig config = adaln_config();
  ElfNet network(config, at::kCPU);
  network.initialise(1);
  TensorMap trace;
  network.set_trace(&trace);
  DenoiserInput input = random_input(config, 3);
  const at::Tensor features = network.features(input);
  EXPECT_TRUE(at::equal(trace.at("features"), trace.at("text_proj")));
  EXPECT_TRUE(at::equal(features.narrow(-1, 0, config.hidden_size), trace.at("text_proj")));
  input.t = input.t * 0.5;
  input.w = input.w * 2;
  input.mode = at::ones({3});
  EXPECT_TRUE(at::equal(network.features(input), features));
  EXPECT_EQ(network.denoise_head(features).abs().max().item<double>(), 0);
}

// Once trained away from zero, each of t, w and the mode matters, and every weight but the heads gets a
// gradient from the features.
TEST(AdaLnZero, ReadsTimeScaleAndMode) {
  const ModelConfig config = adaln_config();
  ElfNet network(config, at::kCPU);
  network.initialise(1);
  {
    const at::NoGradGuard no_grad;
    for (const ParamRef& p : network.parameters()) {
      if (p.name.find("adaLN_modulation") == std::string::npos) continue;
      const at::Tensor noise = normal({5, Purpose::kInit}, {0}, p.tensor.sizes()).squeeze(0);
      at::Tensor(p.tensor).copy_(noise * 0.1);
    }
  }
  const DenoiserInput input = random_input(config, 3);
  const at::Tensor features = network.features(input);
  for (int which = 0; which < 3; ++which) {
    DenoiserInput other = input;
    if (which == 0) other.t = input.t * 0.5;
    if (which == 1) other.w = input.w * 2;
    if (which == 2) other.mode = at::ones({3});
    EXPECT_GT((network.features(other) - features).abs().max().item<double>(), 1e-3) << which;
  }
  (network.denoise_head(features).sum() + network.decode_head(features).sum()).backward();
  std::vector<at::Tensor> gradients;
  for (const ParamRef& p : network.parameters()) {
    ASSERT_TRUE(p.tensor.grad().defined()) << p.name;
    gradients.push_back(p.tensor.grad().clone());
    p.tensor.mutable_grad().reset();
  }
  // Blocks that run again in the backward pass hand the same gradients to what made the condition.
  network.set_recompute(true);
  const at::Tensor again = network.features(input);
  (network.denoise_head(again).sum() + network.decode_head(again).sum()).backward();
  for (size_t i = 0; i < gradients.size(); ++i) {
    const ParamRef& p = network.parameters()[i];
    EXPECT_TRUE(test::close_to_largest(p.tensor.grad(), gradients[i], 1e-5)) << p.name;
  }
}

// No prefix, but one more product a block, and one at the end, for each row.
TEST(AdaLnZero, IsCountedByItsOperations) {
  ModelConfig config = adaln_config(), bare = config;
  bare.conditioning = Conditioning::kInContext;
  bare.num_time_tokens = bare.num_self_cond_cfg_tokens = bare.num_model_mode_tokens = 0;
  const auto hidden = static_cast<double>(config.hidden_size), depth = static_cast<double>(config.depth);
  EXPECT_DOUBLE_EQ(forward_flops(config, 7, true).trunk - forward_flops(bare, 7, true).trunk,
                   2 * hidden * hidden * (6 * depth + 2));
}

// ELF-B with prefix tokens has 105 million parameters, with adaLN-Zero 148 million, as published.
TEST(AdaLnZero, HasThePublishedSize) {
  ModelConfig config;
  config.vocab_size = 32100;
  config.max_length = 1024;
  EXPECT_EQ(parameter_count(config), 104579940);
  config.conditioning = Conditioning::kAdaLnZero;
  EXPECT_EQ(parameter_count(config), 148275300);
}

}  // namespace
}  // namespace elf
