#include "elf/sample/decode.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "elf/base/error.h"

namespace elf {
namespace {

constexpr int64_t kLogitsAtOnce = int64_t{1} << 24;  // elements

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
  at::NoGradGuard no_grad;
  const at::Tensor features =
      model.network.features(decode_input(model, latents, w)).flatten(0, 1);  // [B L, H]
  const int64_t positions = features.size(0);
  const int64_t vocabulary = model.network.decode_head(features.slice(0, 0, 1)).size(-1);
  const int64_t chunk = std::max<int64_t>(1, kLogitsAtOnce / vocabulary);
  at::Tensor ids = at::empty({positions}, latents.options().dtype(at::kLong));
  for (int64_t begin = 0; begin < positions; begin += chunk) {
    const int64_t end = std::min(positions, begin + chunk);
    ids.slice(0, begin, end).copy_(model.network.decode_head(features.slice(0, begin, end)).argmax(-1));
  }
  return ids.view({latents.size(0), latents.size(1)});
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

at::Tensor pad_from_eos(const at::Tensor& ids, int64_t eos, int64_t pad) {
  return ids.masked_fill(ids.eq(eos).cumsum(1).gt(0), pad);
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
