#include "elf/flow/draws.h"

#include <ATen/ATen.h>

#include "elf/tensor/device.h"
#include "elf/tensor/random.h"

namespace elf {
namespace {

// Standard normals for the rows where `wanted` [B] is true, zeros elsewhere.
at::Tensor normal_where(const at::Tensor& wanted, const Stream& stream, const std::vector<int64_t>& samples,
                        at::IntArrayRef shape) {
  std::vector<int64_t> some;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (wanted[static_cast<int64_t>(i)].item<bool>()) some.push_back(samples[i]);
  }
  const at::Tensor drawn = normal(stream, some, shape);
  if (some.size() == samples.size()) return drawn;
  std::vector<int64_t> sizes = drawn.sizes().vec();
  sizes[0] = static_cast<int64_t>(samples.size());
  return at::zeros(sizes, at::kFloat).index_copy_(0, wanted.nonzero().reshape({-1}), drawn);
}

}  // namespace

StepDraws draw_step(const FlowConfig& config, const StepShape& shape, uint64_t seed, int64_t step,
                    const std::vector<int64_t>& samples) {
  const auto stream = [&](Purpose purpose) { return Stream{seed, purpose, static_cast<uint64_t>(step)}; };
  const auto uniforms = [&](Purpose purpose) { return uniform(stream(purpose), samples, {}); };
  const auto rows = static_cast<int64_t>(samples.size());
  StepDraws draws;
  draws.time = config.time_schedule == TimeDistribution::kUniform
                   ? uniforms(Purpose::kTime)
                   : normal(stream(Purpose::kTime), samples, {});
  const at::Tensor branch = config.branch == Branch::kPerStep
                                ? uniform(stream(Purpose::kBranch), {0}, {}).expand({rows}).contiguous()
                                : uniforms(Purpose::kBranch);
  draws.decoder_row = branch.lt(config.decoder_prob);
  const at::Tensor denoise_row = draws.decoder_row.logical_not();
  draws.eps = normal_where(denoise_row, stream(Purpose::kNoise), samples, {shape.length, shape.latent_dim});
  draws.p_normal = normal_where(draws.decoder_row, stream(Purpose::kDecodeLevel), samples, {shape.length});
  draws.decoder_eps = normal_where(draws.decoder_row, stream(Purpose::kDecodeNoise), samples,
                                   {shape.length, shape.latent_dim});
  draws.self_cond = uniforms(Purpose::kSelfCond);
  draws.w = uniforms(Purpose::kSelfCondScale);
  draws.label_drop = config.label_drop_prob > 0 ? uniforms(Purpose::kLabelDrop).lt(config.label_drop_prob)
                                                : at::zeros({rows}, at::kBool);
  if (config.decoder_mask_prob > 0) {
    draws.decoder_mask = uniform(stream(Purpose::kDecodeMask), samples, {shape.length})
                             .lt(config.decoder_mask_prob)
                             .logical_and(draws.decoder_row.unsqueeze(1));
  }
  return draws;
}

StepDraws to(const StepDraws& draws, at::Device device) {
  StepDraws moved = draws;
  for (at::Tensor* tensor :
       {&moved.time, &moved.eps, &moved.decoder_row, &moved.p_normal, &moved.decoder_eps, &moved.self_cond,
        &moved.w, &moved.label_drop, &moved.decoder_mask, &moved.substeps}) {
    *tensor = upload(*tensor, device);
  }
  return moved;
}

}  // namespace elf
