#include "elf/flow/objective.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "corruption.h"
#include "elf/base/error.h"
#include "elf/base/phases.h"
#include "elf/flow/conditioning.h"
#include "elf/flow/guidance.h"
#include "elf/flow/interpolant.h"
#include "vocabulary_loss.h"

namespace elf {
namespace {

// What the draws make of a batch. Rows in decode mode: t = 1, corrupted latents; the others: noisy latents at
// their time.
struct Noised {
  at::Tensor x, z;      // [B, L, D] clean and noisy latents, condition dropped where asked
  at::Tensor t, w;      // [B]; w undefined without SC-CFG tokens
  at::Tensor decode;    // [B] bool
  at::Tensor cond;      // [B, L] bool
  DenoiserInput input;  // of the forward with gradients; self_cond not yet set
};

Noised add_noise(const NetworkTraits& traits, const ObjectiveInput& input, const StepDraws& draws,
                 const FlowConfig& config) {
  Noised n;
  n.cond = input.cond_mask;
  n.decode = draws.decoder_row;
  // Latents that are trained learn from the denoise branch; the decode branch trains the way out.
  n.x = input.latents.requires_grad()
            ? at::where(broadcast_rows(n.decode, input.latents), input.latents.detach(), input.latents)
            : input.latents;
  if (config.label_drop_prob > 0)
    n.x = zero_condition(n.x, n.cond.logical_and(draws.label_drop.unsqueeze(1)));
  n.t = training_time(draws.time, config);
  if (traits.cfg_tokens) n.w = self_cond_scale(draws.w, config);
  n.z = pin_condition(mix_noise(n.x, n.t, draws.eps, config.denoiser_noise_scale), n.x, n.cond);
  const at::Tensor corrupted = corrupted_latents(n.x, n.cond, draws, config);
  n.input.z = at::where(broadcast_rows(n.decode, n.z), corrupted, n.z);
  n.input.t = n.t.masked_fill(n.decode, 1.0);
  n.input.w = n.w;
  n.input.mode = n.decode.to(at::kFloat);
  n.input.dropout = traits.dropout;
  return n;
}

// Input of the given rows at their denoise time, with that self-condition half: for forwards without
// gradients and without dropout.
DenoiserInput rows_of(const Noised& n, const at::Tensor& rows, const at::Tensor& half) {
  DenoiserInput input;
  input.z = n.z.index_select(0, rows);
  input.self_cond = half.index_select(0, rows);
  input.t = n.t.index_select(0, rows);
  if (n.w.defined()) input.w = n.w.index_select(0, rows);
  return input;
}

// [B, L, D] what the network is told of its own prediction: x_u in the rows with the coin, else zero; the
// clean condition at condition positions; in decode rows zero everywhere.
at::Tensor self_condition(Denoiser& network, const Noised& n, const at::Tensor& coin_rows) {
  const Phase phase("no_grad_forward");
  const at::NoGradGuard no_grad;
  const at::Tensor shown = n.cond.logical_and(n.decode.logical_not().unsqueeze(1));
  const at::Tensor half = pin_condition(at::zeros_like(n.x), n.x, shown);
  if (coin_rows.numel() == 0) return half;
  const at::Tensor x_u = network.x_hat(rows_of(n, coin_rows, half));
  return half.index_copy(
      0, coin_rows, pin_condition(x_u, n.x.index_select(0, coin_rows), n.cond.index_select(0, coin_rows)));
}

// The velocity target at `positions` [n] of the flattened batch; v_hat [n, D] is the network's own velocity
// there.
at::Tensor target_at(const at::Tensor& positions, const at::Tensor& rows, const Noised& n,
                     const at::Tensor& guided_row, const at::Tensor& x_u_all, const at::Tensor& v_hat,
                     const at::Tensor& x_c_all, double t_eps) {
  const auto at_positions = [&](const at::Tensor& all) {
    return all.flatten(0, 1).index_select(0, positions);
  };
  const at::Tensor z = at_positions(n.z), t = n.t.index_select(0, rows);
  const at::Tensor v = velocity(at_positions(n.x), z, t, t_eps);
  if (!guided_row.defined()) return v;
  const at::Tensor v_u = velocity(at_positions(x_u_all), z, t, t_eps);
  // The forward with gradients had the very input that v_c asks for.
  const at::Tensor v_c = x_c_all.defined() ? velocity(at_positions(x_c_all), z, t, t_eps) : v_hat.detach();
  const at::Tensor guided = guided_target(v, v_c, v_u, n.w.index_select(0, rows));
  return at::where(guided_row.index_select(0, rows).unsqueeze(1), guided, v);
}

at::Tensor positions_where(const at::Tensor& mask) {
  return mask.flatten().nonzero().reshape({-1});
}

}  // namespace

void check_objective(const ObjectiveInput& input, const StepDraws& draws) {
  const at::Tensor& x = input.latents;
  if (!x.defined() || x.dim() != 3) usage_error("objective: latents must be [B, L, D]");
  const auto expect = [](const char* name, const at::Tensor& tensor, at::IntArrayRef sizes) {
    if (!tensor.defined()) usage_error("objective: ", name, " is missing; expected ", sizes);
    if (tensor.sizes() != sizes)
      usage_error("objective: ", name, " is ", tensor.sizes(), ", expected ", sizes);
  };
  const int64_t batch = x.size(0), length = x.size(1);
  expect("ids", input.ids, {batch, length});
  expect("valid_mask", input.valid_mask, {batch, length});
  expect("cond_mask", input.cond_mask, {batch, length});
  expect("draws.time", draws.time, {batch});
  expect("draws.eps", draws.eps, x.sizes());
  expect("draws.decoder_row", draws.decoder_row, {batch});
  expect("draws.p_normal", draws.p_normal, {batch, length});
  expect("draws.decoder_eps", draws.decoder_eps, x.sizes());
}

at::Tensor loss_mask(const ObjectiveInput& input, PadToken pad_token) {
  const at::Tensor free = input.cond_mask.logical_not();
  return pad_token == PadToken::kEos ? free : free.logical_and(input.valid_mask);
}

Loss objective(Denoiser& network, const NetworkTraits& traits, const ObjectiveInput& input,
               const StepDraws& draws, const FlowConfig& config, double positions) {
  check_objective(input, draws);
  Noised n = add_noise(traits, input, draws, config);
  // Rows and positions are counted before the first forward: counting waits for the device.
  const at::Tensor mask = loss_mask(input, config.pad_token), decode = n.decode.unsqueeze(1);
  const at::Tensor denoise_at = positions_where(mask.logical_and(decode.logical_not()));
  const at::Tensor decode_at = positions_where(mask.logical_and(decode));
  const int64_t denoise_count = denoise_at.numel(), decode_count = decode_at.numel();
  at::Tensor coin_row, x_c;  // [B] bool; [B, L, D] predictions for the guidance target, with dropout only
  bool guided = false;
  if (traits.self_cond) {
    coin_row = draws.self_cond.lt(config.self_cond_prob).logical_and(n.decode.logical_not());
    const at::Tensor coin_rows = coin_row.nonzero().reshape({-1});
    n.input.self_cond = self_condition(network, n, coin_rows);
    guided = traits.cfg_tokens && coin_rows.numel() > 0;
    if (guided && traits.dropout) {
      const Phase phase("no_grad_forward");
      const at::NoGradGuard no_grad;
      x_c = at::zeros_like(n.x).index_copy(0, coin_rows,
                                           network.x_hat(rows_of(n, coin_rows, n.input.self_cond)));
    }
  }
  const at::Tensor features = network.features(n.input);
  const std::vector<at::Tensor> chosen = features.reshape({-1, features.size(-1)})
                                             .index_select(0, at::cat({denoise_at, decode_at}))
                                             .split_with_sizes({denoise_count, decode_count});
  Loss loss;
  loss.ce_positions = at::full({}, decode_count, features.options());
  loss.l2_positions = at::full({}, denoise_count, features.options());
  loss.ce_sum = loss.l2_sum = loss.correct = at::zeros({}, features.options());
  std::vector<at::Tensor> terms;
  if (denoise_count > 0 || decode_count == 0) {  // with neither: an empty sum that keeps the graph whole
    const at::Tensor rows = denoise_at.div(input.latents.size(1), "floor");
    const at::Tensor z = n.z.flatten(0, 1).index_select(0, denoise_at), t = n.t.index_select(0, rows);
    const at::Tensor v_hat =
        velocity(network.x_from_output(network.denoise_head(chosen[0]), z, t), z, t, config.t_eps);
    const at::Tensor target = target_at(denoise_at, rows, n, guided ? coin_row : at::Tensor(),
                                        n.input.self_cond, v_hat, x_c, config.t_eps);
    terms.push_back((v_hat - target).square().mean(-1).sum());
    loss.l2_sum = terms.back().detach();
  }
  if (decode_count > 0) {
    const VocabularyLoss ce =
        vocabulary_loss(network, chosen[1], input.ids.flatten().index_select(0, decode_at),
                        vocabulary_piece(traits.vocab_size, decode_count));
    terms.push_back(ce.sum);
    loss.ce_sum = ce.sum.detach();
    loss.correct = ce.correct;
  }
  const double divisor =
      positions > 0 ? positions : static_cast<double>(std::max<int64_t>(1, denoise_count + decode_count));
  loss.total = (terms.size() == 1 ? terms[0] : terms[0] + terms[1]) / divisor;
  return loss;
}

}  // namespace elf
