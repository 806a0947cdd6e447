#include "elf/sample/generate.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "elf/base/error.h"
#include "elf/data/masks.h"
#include "elf/sample/decode.h"

namespace elf {

Generator::Generator(const SamplerModel& model, LatentCodec* codec, const GeneratorShape& shape,
                     const SamplingConfig& config, at::Device device)
    : model_(model), codec_(codec), shape_(shape), config_(config), device_(device) {
  if (shape.max_input_length >= shape.length) {
    usage_error("max_input_length ", shape.max_input_length, " leaves no room for an output in max_length ",
                shape.length);
  }
}

std::vector<TokenIds> Generator::generate(const std::vector<int64_t>& samples,
                                          const std::vector<TokenIds>& conditions,
                                          const GeneratorObserver& observer) {
  if (!conditions.empty() && conditions.size() != samples.size()) {
    usage_error("generator: ", conditions.size(), " conditions for ", samples.size(), " samples");
  }
  if (samples.empty()) return {};
  std::vector<int64_t> lengths;
  for (const TokenIds& condition : conditions) lengths.push_back(static_cast<int64_t>(condition.size()));
  const SampleConditions known = conditions.empty() ? SampleConditions{} : encode(conditions);
  const SamplerDraws draws = draw_sampler(config_, samples, shape_.length, shape_.latent_dim, device_);

  StepObserver decode_step;
  if (observer) {
    decode_step = [&](const SamplerStep& step) {
      const bool last = step.index + 2 == static_cast<int64_t>(draws.times.size());
      observer({step.index, step.t, decode(last ? step.z : step.x_hat, lengths)});
    };
  }
  const LatentSamples result = sample_latents(model_, config_, draws, known, decode_step);
  forwards_ += result.forwards;
  rows_ += result.rows;
  if (!at::isfinite(result.latents).all().item<bool>()) {
    numerical_error("samples ", samples.front(), " to ", samples.back(),
                    ": the latents are not finite; are the weights, --sc-cfg and --cfg sane?");
  }
  return decode(result.latents, lengths);
}

SampleConditions Generator::encode(const std::vector<TokenIds>& conditions) const {
  if (codec_ == nullptr) usage_error("this model was trained without conditions; it takes no input");
  const int64_t rows = static_cast<int64_t>(conditions.size());
  const at::Tensor ids = at::full({rows, shape_.length}, shape_.pad_id, at::kLong);
  const at::Tensor mask = at::zeros({rows, shape_.length}, at::kBool);
  for (int64_t b = 0; b < rows; ++b) {
    const TokenIds& condition = conditions[b];
    const int64_t length = static_cast<int64_t>(condition.size());
    if (length > shape_.max_input_length) {
      usage_error("condition ", b, " has ", length, " tokens, at most ", shape_.max_input_length, " fit");
    }
    std::copy(condition.begin(), condition.end(), ids[b].data_ptr<int64_t>());
    mask[b].slice(0, 0, length).fill_(true);
  }
  // Nothing of the target is known: the condition is all that is valid.
  return {codec_->encode(ids, encoder_mask(mask, mask)).to(device_), mask.to(device_)};
}

std::vector<TokenIds> Generator::decode(const at::Tensor& latents,
                                        const std::vector<int64_t>& condition_lengths) {
  at::Tensor ids = decode_ids(model_, latents, config_.self_cond_cfg).cpu();
  ++forwards_;
  rows_ += latents.size(0);
  if (!condition_lengths.empty())
    ids = target_part(ids, condition_lengths, shape_.length - shape_.max_input_length);
  return cut_at_eos(ids, shape_.eos_id);
}

}  // namespace elf
