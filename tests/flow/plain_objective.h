// The training objective the plain way, as docs/ALGORITHM.md section 3 tells it: every forward on every row,
// both heads on every position, the guidance target from a second no-gradient forward. Shows every
// intermediate under the names of golden/README.md. The reference of elf::objective.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <string>

#include "elf/flow/objective.h"
#include "elf/tensor/safetensors.h"

namespace elf::test {

struct PlainLoss {
  at::Tensor total, ce_mean, l2_mean;
  TensorMap mid;
};

inline PlainLoss plain_objective(Denoiser& network, const NetworkTraits& traits, const ObjectiveInput& in,
                                 const StepDraws& draws, const FlowConfig& config) {
  PlainLoss out;
  TensorMap& mid = out.mid;
  const auto per_row = [](const at::Tensor& v) { return v.reshape({-1, 1, 1}); };
  const at::Tensor cond = in.cond_mask.unsqueeze(-1).to(at::kFloat);
  const at::Tensor dropped = cond * per_row(draws.label_drop.to(at::kFloat));

  const at::Tensor t = config.time_schedule == TimeDistribution::kUniform
                           ? draws.time
                           : at::sigmoid(config.denoiser_p_mean + config.denoiser_p_std * draws.time);
  at::Tensor x = in.latents;
  at::Tensor z = per_row(t) * x + (1 - per_row(t)) * config.denoiser_noise_scale * draws.eps;
  z = cond * x + (1 - cond) * z;
  z = z * (1 - dropped);
  x = x * (1 - dropped);
  mid["t"] = t;
  mid["x"] = x;
  mid["z"] = z;
  at::Tensor w;
  if (traits.cfg_tokens) {
    const double a = config.self_cond_cfg_min, b = config.self_cond_cfg_max;
    w = mid["w"] = (1 + a) * at::exp(draws.w * std::log((1 + b) / (1 + a))) - 1;
  }
  const at::Tensor p =
      at::sigmoid(config.decoder_p_mean + config.decoder_p_std * draws.p_normal).unsqueeze(-1);
  at::Tensor z_decode = p * x + (1 - p) * config.decoder_noise_scale * draws.decoder_eps;
  if (config.decode_condition == DecodeCondition::kClean) z_decode = cond * x + (1 - cond) * z_decode;
  mid["p"] = p;
  mid["z_decode"] = z_decode;

  const at::Tensor room = at::clamp_min(1 - per_row(t), config.t_eps);
  const at::Tensor v = (x - z) / room;
  at::Tensor target = v, half;
  if (traits.self_cond) {
    const at::NoGradGuard no_grad;
    const at::Tensor coin = draws.self_cond.lt(config.self_cond_prob).to(at::kFloat);
    const at::Tensor raw = network.x_hat({z, cond * x, t, w, {}, {}});
    const at::Tensor x_u = cond * x + (1 - cond) * raw;
    half = per_row(coin) * x_u + (1 - per_row(coin)) * cond * x;
    mid["coin"] = coin;
    mid["x_u"] = x_u;
    if (traits.cfg_tokens) {
      const at::Tensor v_u = (raw - z) / room;
      const at::Tensor v_c = (network.x_hat({z, x_u, t, w, {}, {}}) - z) / room;
      target = v + per_row(coin) * (1 - 1 / per_row(w)) * (v_c - v_u);
      mid["v_u"] = v_u;
      mid["v_c"] = v_c;
    }
  }
  mid["v_base"] = v;
  mid["v_target"] = target;

  const at::Tensor decode = draws.decoder_row.to(at::kFloat);
  const at::Tensor z_in = per_row(decode) * z_decode + (1 - per_row(decode)) * z;
  const at::Tensor t_in = decode + (1 - decode) * t;
  const at::Tensor half_in = traits.self_cond ? half * (1 - per_row(decode)) : at::Tensor();
  mid["t_mixed"] = t_in;
  mid["model_input"] = traits.self_cond ? at::cat({z_in, half_in}, -1) : z_in;
  DenoiserInput input{z_in, half_in, t_in, w, decode, {}};
  input.dropout = traits.dropout;
  const at::Tensor features = network.features(input);
  const at::Tensor x_hat = mid["x_hat"] = network.denoise_head(features);
  const at::Tensor logits = mid["logits"] = network.decode_head(features);
  const at::Tensor v_hat = mid["v_hat"] = (x_hat - z) / room;
  const at::Tensor ce = mid["ce_per_position"] =
      -logits.log_softmax(-1).gather(-1, in.ids.unsqueeze(-1)).squeeze(-1);
  const at::Tensor l2 = mid["l2_per_position"] = (v_hat - target).square().mean(-1);
  at::Tensor mask = 1 - in.cond_mask.to(at::kFloat);
  if (config.pad_token == PadToken::kPad) mask = mask * in.valid_mask.to(at::kFloat);
  mid["loss_mask"] = mask;
  const at::Tensor ce_mask = mask * decode.unsqueeze(1), l2_mask = mask * (1 - decode.unsqueeze(1));
  out.total = ((ce * ce_mask).sum() + (l2 * l2_mask).sum()) / mask.sum().clamp_min(1);
  out.ce_mean = (ce * ce_mask).sum() / ce_mask.sum().clamp_min(1);
  out.l2_mean = (l2 * l2_mask).sum() / l2_mask.sum().clamp_min(1);
  return out;
}

}  // namespace elf::test
