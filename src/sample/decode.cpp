#include "elf/sample/decode.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "elf/base/error.h"

namespace elf {
namespace {

constexpr int64_t kLogitsAtOnce = int64_t{1} << 24;  // elements

// [1, V] bool on the device of `like`.
at::Tensor ban_mask(const std::vector<int64_t>& banned, int64_t vocabulary, const at::Tensor& like) {
  const at::Tensor mask = at::zeros({1, vocabulary}, at::kBool);
  for (const int64_t id : banned) {
    if (id >= 0 && id < vocabulary) mask[0][id] = true;
  }
  return mask.to(like.device());
}

}  // namespace

DenoiserInput decode_input(const SamplerModel& model, const at::Tensor& latents, double w) {
  DenoiserInput input;
  input.z = latents;
  if (model.traits.self_cond) input.self_cond = at::zeros_like(latents);
  input.t = at::ones({latents.size(0)}, latents.options());
  if (model.traits.cfg_tokens) input.w = at::full_like(input.t, w);
  input.mode = at::ones_like(input.t);
  return input;
}

at::Tensor decode_ids(const SamplerModel& model, const at::Tensor& latents, double w) {
  return decode(model, latents, {.w = w}).ids;
}

Decoded decode(const SamplerModel& model, const at::Tensor& latents, const DecodeRequest& request) {
  at::NoGradGuard no_grad;
  const int64_t rows = latents.size(0), length = latents.size(1), positions = rows * length;
  const at::Tensor features =
      model.network.features(decode_input(model, latents, request.w)).flatten(0, 1);  // [B L, H]
  const int64_t vocabulary = model.network.decode_head(features.slice(0, 0, 1)).size(-1);
  const int64_t chunk = std::max<int64_t>(1, kLogitsAtOnce / vocabulary);
  const at::Tensor ban =
      request.banned_at.defined() ? ban_mask(request.banned, vocabulary, latents) : at::Tensor();

  const at::TensorOptions floats = latents.options().dtype(at::kFloat);
  Decoded flat{at::empty({positions}, latents.options().dtype(at::kLong)), {}, {}, {}};
  if (request.certainty)
    flat.confidence = at::empty({positions}, floats), flat.entropy = at::empty({positions}, floats);
  if (request.score.defined()) flat.log_prob = at::empty({positions}, floats);
  for (int64_t begin = 0; begin < positions; begin += chunk) {
    const int64_t end = std::min(positions, begin + chunk);
    const auto part = [&](const at::Tensor& whole) { return whole.slice(0, begin, end); };
    at::Tensor logits = model.network.decode_head(part(features));
    if (ban.defined()) {
      const at::Tensor here = part(request.banned_at.to(latents.device()).flatten()).unsqueeze(1);
      logits = logits.masked_fill(here.logical_and(ban), -std::numeric_limits<double>::infinity());
    }
    part(flat.ids).copy_(logits.argmax(-1));
    if (!request.certainty && !request.score.defined()) continue;
    const at::Tensor log_p = at::log_softmax(logits, -1, at::kFloat);
    const auto of = [&](const at::Tensor& ids) { return log_p.gather(1, ids.unsqueeze(1)).squeeze(1); };
    if (request.certainty) {
      part(flat.confidence).copy_(of(part(flat.ids)).exp());
      part(flat.entropy).copy_(log_p.exp().mul(log_p).nan_to_num(0.0).sum(-1).neg().clamp_min(0.0));
    }
    if (request.score.defined()) {
      const at::Tensor ids = part(request.score.to(latents.device()).flatten()).clamp(0, vocabulary - 1);
      part(flat.log_prob).copy_(of(ids));
    }
  }
  const auto shaped = [&](const at::Tensor& t) { return t.defined() ? t.view({rows, length}) : t; };
  return {shaped(flat.ids), shaped(flat.confidence), shaped(flat.entropy), shaped(flat.log_prob)};
}

at::Tensor target_part(const at::Tensor& ids, const std::vector<int64_t>& lengths, int64_t keep) {
  if (static_cast<int64_t>(lengths.size()) != ids.size(0)) {
    usage_error("target part: ", lengths.size(), " condition lengths for ", ids.size(0), " rows");
  }
  const int64_t length = ids.size(1);
  at::Tensor result = at::zeros({ids.size(0), keep}, ids.options());
  for (int64_t b = 0; b < ids.size(0); ++b) {
    const int64_t begin = std::min(lengths[b], length), count = std::min(keep, length - begin);
    result[b].slice(0, 0, count).copy_(ids[b].slice(0, begin, begin + count));
  }
  return result;
}

std::vector<std::vector<int64_t>> cut_at_eos(const at::Tensor& ids, int64_t eos) {
  const at::Tensor rows = ids.to(at::kCPU, at::kLong).contiguous();
  std::vector<std::vector<int64_t>> result;
  for (int64_t b = 0; b < rows.size(0); ++b) {
    const int64_t* begin = rows.data_ptr<int64_t>() + b * rows.size(1);
    result.emplace_back(begin, std::find(begin, begin + rows.size(1), eos));
  }
  return result;
}

}  // namespace elf
