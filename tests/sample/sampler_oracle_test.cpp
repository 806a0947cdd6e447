// Samplers against golden/sampler: state and prediction after every step, inputs and times of every network
// call, ids, logits. Tolerance 1e-3 along the trajectory (absolute and relative), ids exact.
#include <ATen/ATen.h>

#include <algorithm>

#include "elf/base/error.h"
#include "elf/model/elf_net.h"
#include "elf/sample/decode.h"
#include "elf/sample/sampler.h"
#include "elf/tensor/random.h"
#include "plain_sampler.h"
#include "support/golden.h"

namespace elf {
namespace {

using test::all_close;
using test::golden;
using test::golden_json;

constexpr double kTolerance = 1e-3;

ElfNet tiny_network(const std::string& name) {
  const nlohmann::json dims = golden_json("elf_tiny/config.json").at(name).at("dims");
  ModelConfig config;
  config.latent_dim = dims.at("text_encoder_dim");
  config.hidden_size = dims.at("hidden_size");
  config.num_heads = dims.at("num_heads");
  config.depth = dims.at("depth");
  config.mlp_ratio = dims.at("mlp_ratio");
  config.bottleneck_dim = dims.at("bottleneck_dim");
  config.vocab_size = dims.at("vocab_size");
  config.max_length = dims.at("max_length");
  config.num_time_tokens = dims.at("num_time_tokens");
  config.num_self_cond_cfg_tokens = dims.at("num_self_cond_cfg_tokens");
  config.num_model_mode_tokens = dims.at("num_model_mode_tokens");
  ElfNet network(config, at::kCPU);
  network.load(
      read_safetensors(golden("elf_tiny/params" + (name == "full" ? "" : "_" + name) + ".safetensors")));
  return network;
}

// One golden case, ready to run.
struct Case {
  explicit Case(const std::string& name)
      : description(golden_json("sampler/sampler.json").at("cases").at(name)),
        tensors(read_safetensors(golden("sampler/" + name + ".safetensors"))),
        network(tiny_network(description.at("network"))),
        model{
            network,
            {description.at("self_cond_prob").get<double>() > 0, description.at("network") != "nocfg", false},
            description.at("noise_scale"),
            description.at("t_eps")} {
    config.sampler = description.at("method") == "sde" ? SamplerKind::kSde : SamplerKind::kOde;
    config.steps = description.at("steps");
    config.gamma = description.at("sde_gamma");
    config.self_cond_cfg = description.at("w");
    config.cfg = description.at("cfg_scale");
    for (int64_t k = 0; k <= config.steps; ++k) draws.times.push_back(tensors.at("times")[k].item<double>());
    draws.eps0 = tensors.at("eps0");
    draws.step_noise = [this](int64_t step) { return tensors.at("sde_eps")[step]; };
    if (description.at("conditional").get<bool>())
      conditions = {tensors.at("cond_latents"), tensors.at("cond_mask").gt(0.5)};
  }

  nlohmann::json description;
  TensorMap tensors;
  ElfNet network;
  SamplerModel model;
  SamplingConfig config;
  SamplerDraws draws;
  SampleConditions conditions;
};

class GoldenSampler : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenSampler, EveryStepAgrees) {
  Case c(GetParam());
  int64_t steps = 0;
  const LatentSamples samples =
      sample_latents(c.model, c.config, c.draws, c.conditions, [&](const SamplerStep& step) {
        EXPECT_EQ(step.index, steps++);
        EXPECT_TRUE(all_close(step.z, c.tensors.at("z_after_step")[step.index], kTolerance, kTolerance))
            << "z, step " << step.index;
        EXPECT_TRUE(
            all_close(step.x_hat, c.tensors.at("x_hat_after_step")[step.index], kTolerance, kTolerance))
            << "x_hat, step " << step.index;
      });
  EXPECT_EQ(steps, c.config.steps);
  EXPECT_EQ(samples.forwards, c.config.steps);  // whatever the guidance: one call a step
  EXPECT_TRUE(all_close(samples.latents, c.tensors.at("z_after_step")[steps - 1], kTolerance, kTolerance));

  // Work: the published calls, without the explicit SC-CFG half of the first step, where both halves are the
  // same.
  const bool guides_self = c.model.traits.self_cond && !c.model.traits.cfg_tokens &&
                           c.config.self_cond_cfg != 1 && c.config.self_cond_cfg != 0;
  const int64_t saved = guides_self ? (c.config.cfg != 1 ? 2 : 1) : 0;
  EXPECT_EQ(samples.rows,
            (c.description.at("network_forwards").get<int64_t>() - saved) * c.draws.eps0.size(0));
}

TEST_P(GoldenSampler, DecodesToTheSameIds) {
  Case c(GetParam());
  const at::Tensor latents = sample_latents(c.model, c.config, c.draws, c.conditions).latents;
  const at::Tensor ids = decode_ids(c.model, latents, c.config.self_cond_cfg);
  EXPECT_TRUE(at::equal(ids, c.tensors.at("ids")));
  at::NoGradGuard no_grad;
  const at::Tensor logits = c.network.logits(decode_input(c.model, latents, c.config.self_cond_cfg));
  EXPECT_TRUE(all_close(logits[0], c.tensors.at("decode_logits_row0"), kTolerance, kTolerance));
  if (!c.conditions.defined()) return;
  const std::vector<int64_t> lengths = c.description.at("cond_lengths");
  const int64_t keep =
      c.description.at("max_length").get<int64_t>() - c.description.at("max_input_length").get<int64_t>();
  EXPECT_TRUE(at::equal(target_part(ids, lengths, keep), c.tensors.at("ids_target_part")));
}

TEST_P(GoldenSampler, PlainReferenceMakesThePublishedCalls) {
  Case c(GetParam());
  const test::PlainTrace trace = test::PlainSampler(c.model, c.config, c.draws, c.conditions).run();
  const at::Tensor times = c.tensors.at("network_times");
  ASSERT_EQ(static_cast<int64_t>(trace.times.size()), times.size(0));
  EXPECT_TRUE(all_close(at::tensor(at::ArrayRef<double>(trace.times), at::kDouble), times, 1e-6, 1e-6));
  for (size_t j = 0; j < trace.inputs.size(); ++j) {
    const auto expected = c.tensors.find(cat("network_input_", j));
    if (expected != c.tensors.end())
      EXPECT_TRUE(all_close(trace.inputs[j], expected->second, kTolerance, kTolerance)) << j;
  }
  sample_latents(c.model, c.config, c.draws, c.conditions, [&](const SamplerStep& step) {
    EXPECT_TRUE(all_close(step.z, trace.z[step.index], 1e-4, 1e-4)) << "step " << step.index;
    EXPECT_TRUE(all_close(step.x_hat, trace.x_hat[step.index], 1e-4, 1e-4)) << "step " << step.index;
  });
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenSampler,
                         ::testing::Values("ode_uncond", "sde_uncond", "ode_cond_cfg2", "ode_cond_nocfgscale",
                                           "sde_cond_cfg2", "explicit_sccfg_ode",
                                           "explicit_sccfg_cond_cfg_sde", "explicit_sccfg_w1",
                                           "explicit_sccfg_w0", "no_selfcond", "sde_alpha_clipped",
                                           "uniform_ode", "one_step", "two_steps"),
                         [](const auto& info) { return info.param; });

TEST(GoldenSamplerCases, AreAllHere) {
  EXPECT_EQ(golden_json("sampler/sampler.json").at("cases").size(), 14u);
}

// Sample i through the network alone, in threes and in one batch: the same latents within 1e-5 of their scale
// and the same ids.
TEST(Batches, DoNotChangeASample) {
  ElfNet network = tiny_network("full");
  const SamplerModel model{network, {true, true, false}, 2.0, 0.05};
  SamplingConfig config;
  config.steps = 8;
  config.seed = 5;
  const auto run = [&](int64_t batch) {
    std::vector<at::Tensor> latents;
    for (int64_t first = 0; first < 16; first += batch) {
      const auto samples = sample_range(first, std::min<int64_t>(batch, 16 - first));
      latents.push_back(sample_latents(model, config, draw_sampler(config, samples, 16, 32)).latents);
    }
    return at::cat(latents);
  };
  const at::Tensor whole = run(16);
  for (const int64_t batch : {1, 3}) {
    const at::Tensor split = run(batch);
    EXPECT_TRUE(test::close_to_largest(split, whole, 1e-4)) << batch;
    EXPECT_TRUE(at::equal(decode_ids(model, split, 3.0), decode_ids(model, whole, 3.0))) << batch;
  }
}

}  // namespace
}  // namespace elf
