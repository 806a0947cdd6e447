// The network against golden/forward: every case, every output and intermediate, 1e-5 (residual stream: 2e-5
// absolute); weight names, shapes and counts against golden/elf_tiny, exactly.
#include "elf/model/elf_net.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elf/base/error.h"
#include "elf/model/weight_map.h"
#include "support/golden.h"
#include "support/tiny_networks.h"

namespace elf {
namespace {

using test::all_close;
using test::golden_json;
using ::testing::HasSubstr;

const TensorMap& forward_golden() {
  static const TensorMap tensors = read_safetensors(test::golden("forward/forward.safetensors"));
  return tensors;
}

at::Tensor get(const std::string& name) {
  const auto found = forward_golden().find(name);
  return found == forward_golden().end() ? at::Tensor() : found->second;
}

class ForwardCase : public ::testing::TestWithParam<std::string> {};

DenoiserInput input_of(const std::string& name, const nlohmann::json& about) {
  const at::Tensor x = get(name + "/x");
  DenoiserInput input;
  input.z = x.narrow(2, 0, 32);
  if (about.at("self_condition_half")) input.self_cond = x.narrow(2, 32, 32);
  input.t = get(name + "/t");
  input.w = get(name + "/w");
  const nlohmann::json& mode = about.at("mode");
  if (mode == "decode") input.mode = at::ones({x.size(0)});
  if (mode == "denoise_explicit") input.mode = at::zeros({x.size(0)});
  if (mode == "per_row") input.mode = get(name + "/gate");
  if (about.at("attention_mask")) input.key_mask = get(name + "/attention_mask").to(at::kBool);
  return input;
}

TEST_P(ForwardCase, EveryIntermediateEqualsGolden) {
  const std::string name = GetParam();
  const nlohmann::json about = golden_json("forward/forward.json").at(name);
  const std::unique_ptr<ElfNet> net = test::tiny_network(about.at("network"));
  TensorMap trace;
  net->set_trace(&trace);
  const DenoiserInput input = input_of(name, about);
  const at::Tensor features = net->features(input);
  EXPECT_TRUE(all_close(net->denoise_head(features), get(name + "/x_hat"), 1e-5, 1e-5));
  if (!about.at("mode").is_null())
    EXPECT_TRUE(all_close(net->decode_head(features), get(name + "/logits"), 1e-5, 1e-5));
  const std::string act = name + "/act/";
  for (const auto& [key, expected] : forward_golden()) {
    if (!key.starts_with(act)) continue;
    const std::string which = key.substr(act.size());
    ASSERT_TRUE(trace.count(which)) << which;
    // The golden residual stream, of magnitude 6, is itself up to 1.05e-5 away from a float64 evaluation
    // (block3 of sc_w_per_row_gate).
    const double atol = which.starts_with("block") ? 2e-5 : 1e-5;
    EXPECT_TRUE(all_close(trace.at(which), expected, 1e-5, atol)) << which;
  }
  // Neither tracing nor the graph changes a number.
  net->set_trace(nullptr);
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(at::equal(net->features(input), features));
}

std::vector<std::string> forward_cases() {
  std::vector<std::string> names;
  const nlohmann::json cases = golden_json("forward/forward.json");
  for (const auto& [name, about] : cases.items()) {
    if (about.contains("network")) names.push_back(name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Golden, ForwardCase, ::testing::ValuesIn(forward_cases()),
                         [](const auto& info) { return info.param; });

TEST(Weights, NamesShapesAndOrderArePublished) {
  const nlohmann::json golden = golden_json("elf_tiny/config.json");
  for (const std::string network : {"full", "nocfg", "oddprefix"}) {
    const std::vector<WeightSpec> specs = weight_specs(test::tiny_config(network));
    const nlohmann::json& names = golden.at(network).at("names");
    EXPECT_EQ(specs.size(), names.size());
    for (const WeightSpec& spec : specs)
      EXPECT_EQ(nlohmann::json(spec.shape), names.at(spec.name)) << spec.name;
  }
  // The published optimiser numbers its parameters: first the matrices, then the rest, each in module order.
  std::vector<std::string> order;
  for (const bool matrices : {true, false}) {
    for (const WeightSpec& spec : weight_specs(test::tiny_config("full"))) {
      if ((spec.shape.size() == 2) == matrices) order.push_back(spec.name);
      EXPECT_EQ(spec.shape.size() == 2, spec.fan_in > 0) << spec.name;
    }
  }
  EXPECT_EQ(nlohmann::json(order), golden.at("checkpoint").at("opt_param_order"));
}

TEST(Weights, FansFollowTheMeaning) {
  const auto net = test::tiny_network("full");
  for (const ParamRef& p : net->parameters()) {
    if (!p.is_matrix()) continue;
    const bool in_first = p.name == "proj_kernel" || p.name == "unembed_kernel";
    EXPECT_EQ(p.fan_in, p.tensor.size(in_first ? 0 : 1)) << p.name;
    EXPECT_EQ(p.fan_out, p.tensor.size(in_first ? 1 : 0)) << p.name;
  }
}

TEST(Weights, CountsArePublished) {
  EXPECT_EQ(parameter_count(test::tiny_config("full")), 50577);
  EXPECT_EQ(parameter_count(test::tiny_config("nocfg")), 43713);
  EXPECT_EQ(parameter_count(test::tiny_config("oddprefix")), 50433);
  const nlohmann::json published = golden_json("elf_tiny/published_sizes.json").at("parameters");
  ModelConfig config;
  config.vocab_size = 32100;
  config.max_length = 1024;
  struct Size {
    const char* name;
    int64_t depth, hidden, heads;
  };
  for (const Size& size :
       {Size{"ELF-B", 12, 768, 12}, Size{"ELF-M", 24, 1056, 16}, Size{"ELF-L", 32, 1280, 16}}) {
    config.depth = size.depth;
    config.hidden_size = size.hidden;
    config.num_heads = size.heads;
    EXPECT_EQ(parameter_count(config), published.at(size.name).get<int64_t>()) << size.name;
  }
}

TEST(Weights, PublishedNamesLoseWrapperPrefixes) {
  EXPECT_EQ(published_name("module._orig_mod.t_emb_tokens"), "t_emb_tokens");
  EXPECT_EQ(published_name("_orig_mod.blocks.0.norm1.weight"), "blocks.0.norm1.weight");
  EXPECT_EQ(published_name("blocks.0.module.weight"), "blocks.0.module.weight");
  EXPECT_THROW(published_names({{"module.a", at::zeros({1})}, {"a", at::zeros({1})}}), Error);
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(ElfNet, LoadReportsEverythingAtOnceAndChangesNothing) {
  const std::unique_ptr<ElfNet> net = test::tiny_network("full");
  const at::Tensor before = net->state().at("proj_bias").clone();
  TensorMap weights = test::tiny_weights("full");
  weights.at("proj_bias") = at::zeros({32});
  weights.erase("mode_tokens");
  weights["blocks.9.norm1.weight"] = at::zeros({24});
  weights["t_emb_tokens"] = at::zeros({1, 2, 24});
  const std::string message = message_of([&] { net->load(weights, "model.safetensors"); });
  EXPECT_THAT(message, HasSubstr("model.safetensors"));
  EXPECT_THAT(message, HasSubstr("missing: mode_tokens [1, 4, 24]"));
  EXPECT_THAT(message, HasSubstr("unexpected: blocks.9.norm1.weight"));
  EXPECT_THAT(message, HasSubstr("t_emb_tokens is [1, 2, 24], expected [1, 4, 24]"));
  EXPECT_TRUE(at::equal(net->state().at("proj_bias"), before));
}

TEST(ElfNet, StateIsWhatWasLoaded) {
  const TensorMap weights = test::tiny_weights("full"), state = test::tiny_network("full")->state();
  ASSERT_EQ(state.size(), weights.size());
  for (const auto& [name, tensor] : weights) EXPECT_TRUE(at::equal(state.at(name), tensor)) << name;
}

TEST(ElfNet, InitialiseDependsOnSeedOnly) {
  ElfNet a(test::tiny_config("full"), at::kCPU), b(test::tiny_config("nocfg"), at::kCPU);
  a.initialise(7);
  b.initialise(7);
  for (const auto& [name, tensor] : b.state())
    EXPECT_TRUE(at::equal(a.state().at(name), tensor)) << name;  // other layers change nothing
  EXPECT_EQ(a.state().at("final_layer.linear.weight").abs().max().item<double>(), 0);
  EXPECT_EQ(a.state().at("blocks.1.norm1.weight").min().item<double>(), 1);
  b.initialise(8);
  EXPECT_FALSE(at::equal(a.state().at("proj_kernel"), b.state().at("proj_kernel")));
}

TEST(ElfNet, RefusesWhatDoesNotFit) {
  ModelConfig config = test::tiny_config("full");
  config.num_heads = 5;
  EXPECT_THAT(message_of([&] { ElfNet(config, at::kCPU); }),
              HasSubstr("model.num_heads 5 does not divide model.hidden_size 24"));
  config = test::tiny_config("full");
  config.vocab_size = 0;
  EXPECT_THAT(message_of([&] { ElfNet(config, at::kCPU); }), HasSubstr("vocab_size"));
  const std::unique_ptr<ElfNet> net = test::tiny_network("full");
  DenoiserInput input{at::zeros({2, 17, 32}), {}, at::zeros({2}), {}, {}, {}};
  EXPECT_THAT(message_of([&] { net->features(input); }), HasSubstr("[B, L <= 16, D = 32], got [2, 17, 32]"));
  input = {at::zeros({2, 16, 32}), {}, at::zeros({2}), at::zeros({3}), {}, {}};
  EXPECT_THAT(message_of([&] { net->features(input); }), HasSubstr("w: expected [2], got [3]"));
}

// What the published code cannot run. Shorter sequences: the same as a longer one whose further keys are
// masked out. No w: no SC-CFG tokens, the same as the network without them.
TEST(ElfNet, ShorterSequences) {
  const std::unique_ptr<ElfNet> net = test::tiny_network("full");
  const at::NoGradGuard no_grad;
  const at::Tensor x = get("sc_w_denoise/x"), t = get("sc_w_denoise/t"), w = get("sc_w_denoise/w");
  const at::Tensor mask = at::arange(16).lt(11).expand({3, 16});
  const at::Tensor longer = net->x_hat({x.narrow(2, 0, 32), x.narrow(2, 32, 32), t, w, {}, mask});
  const at::Tensor cut = x.narrow(1, 0, 11);
  const at::Tensor shorter = net->x_hat({cut.narrow(2, 0, 32), cut.narrow(2, 32, 32), t, w, {}, {}});
  EXPECT_TRUE(all_close(shorter, longer.narrow(1, 0, 11), 1e-5, 1e-5));
}

TEST(ElfNet, WithoutScaleRunsAsTheNetworkWithoutItsTokens) {
  const std::unique_ptr<ElfNet> full = test::tiny_network("full"), nocfg = test::tiny_network("nocfg");
  TensorMap shared = full->state();
  std::erase_if(shared, [](const auto& entry) { return entry.first.starts_with("self_cond_cfg"); });
  nocfg->load(shared);
  const at::NoGradGuard no_grad;
  const at::Tensor x = get("sc_w_denoise/x").narrow(2, 0, 32), t = get("sc_w_denoise/t");
  EXPECT_TRUE(at::equal(full->x_hat({x, {}, t, {}, {}, {}}), nocfg->x_hat({x, {}, t, {}, {}, {}})));
  EXPECT_TRUE(
      at::equal(nocfg->x_hat({x, {}, t, at::ones({3}), {}, {}}), nocfg->x_hat({x, {}, t, {}, {}, {}})));
}

TEST(ElfNet, DropoutActsOnlyWhenAskedFor) {
  ModelConfig config = test::tiny_config("full");
  config.dropout = 0.3;
  ElfNet net(config, at::kCPU);
  net.load(test::tiny_weights("full"));
  DenoiserInput input{get("nosc_w_denoise/x"), {}, get("nosc_w_denoise/t"), get("nosc_w_denoise/w"), {}, {}};
  const at::NoGradGuard no_grad;
  const at::Tensor golden = get("nosc_w_denoise/x_hat");
  input.dropout = true;
  EXPECT_TRUE(all_close(net.x_hat(input), golden, 1e-5, 1e-5));  // no key yet
  net.set_dropout(nn::DropoutKey{1, 2, {0, 1, 2}, 0});
  const at::Tensor dropped = net.x_hat(input);
  EXPECT_FALSE(all_close(dropped, golden, 1e-2, 1e-2));
  EXPECT_TRUE(at::equal(net.x_hat(input), dropped));
  TensorMap trace;
  net.set_trace(&trace);
  net.x_hat(input);
  for (const int block : {0, 3})
    EXPECT_EQ(trace.at(cat("block", block, ".attn")).eq(0).sum().item<int64_t>(), 0) << block;
  for (const int block : {1, 2})
    EXPECT_GT(trace.at(cat("block", block, ".attn")).eq(0).sum().item<int64_t>(), 0) << block;
  input.dropout = false;
  EXPECT_TRUE(all_close(net.x_hat(input), golden, 1e-5, 1e-5));
}

}  // namespace
}  // namespace elf
