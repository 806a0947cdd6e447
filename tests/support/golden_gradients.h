// What the golden tests of the objectives share: the published configuration's names, and gradients by name.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "elf/config/flow_config.h"
#include "elf/model/elf_net.h"
#include "support/golden.h"

namespace elf::test {

// The keys that both golden groups have; the others keep their defaults.
inline FlowConfig golden_flow_config(const nlohmann::json& c) {
  FlowConfig config;
  config.denoiser_p_mean = c.at("denoiser_p_mean");
  config.denoiser_p_std = c.at("denoiser_p_std");
  config.denoiser_noise_scale = c.at("denoiser_noise_scale");
  config.t_eps = c.at("t_eps");
  config.decoder_prob = c.at("decoder_prob");
  config.decoder_noise_scale = c.at("decoder_noise_scale");
  config.decoder_p_mean = c.at("decoder_p_mean");
  config.decoder_p_std = c.at("decoder_p_std");
  config.self_cond_prob = c.at("self_cond_prob");
  config.self_cond_cfg_min = c.at("self_cond_cfg_min");
  config.self_cond_cfg_max = c.at("self_cond_cfg_max");
  config.pad_token = c.at("pad_token") == "eos" ? PadToken::kEos : PadToken::kPad;
  return config;
}

// Gradients by name; a missing one is zero, as optimisers take it. Clears them.
inline TensorMap take_gradients(ElfNet& network) {
  TensorMap result;
  for (const ParamRef& p : network.parameters()) {
    result[p.name] = p.tensor.grad().defined() ? p.tensor.grad().clone() : at::zeros_like(p.tensor);
    p.tensor.mutable_grad().reset();
  }
  return result;
}

// Against the norm of the case, and against CASE.grads.safetensors entry by entry where there is one (the
// other cases have the norm only); `tolerance` is relative to the norm and to a tensor's largest entry.
inline void expect_golden_gradients(const std::string& name, const nlohmann::json& about,
                                    const TensorMap& actual, double tolerance) {
  double squares = 0;
  for (const auto& [parameter, gradient] : actual)
    squares += gradient.to(at::kDouble).square().sum().item<double>();
  const double norm = about.at("grad_norm");
  EXPECT_NEAR(std::sqrt(squares), norm, tolerance * norm);
  const std::filesystem::path file = golden(name + ".grads.safetensors");
  if (!std::filesystem::exists(file)) return;
  const TensorMap expected = read_safetensors(file);
  for (const auto& [parameter, gradient] : actual) {
    const auto found = expected.find(parameter);
    if (found == expected.end()) {  // took no part
      EXPECT_EQ(gradient.abs().max().item<double>(), 0) << parameter;
    } else {
      EXPECT_TRUE(close_to_largest(gradient, found->second, tolerance)) << parameter;
    }
  }
}

}  // namespace elf::test
