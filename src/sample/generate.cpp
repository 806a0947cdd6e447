#include "elf/sample/generate.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "elf/base/error.h"
#include "elf/config/schedules.h"
#include "elf/data/masks.h"
#include "elf/sample/decode.h"

namespace elf {

Generator::Generator(const SamplerModel& model, LatentCodec* codec, const GeneratorShape& shape,
                     const SamplingConfig& config, at::Device device)
    : network_(model.network, config, make_recorder(device)),
      model_{network_, model.traits, model.noise_scale, model.t_eps},
      codec_(codec),
      shape_(shape),
      config_(config),
      device_(device) {
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
      GeneratorStep text = read(last ? step.z : step.x_hat, lengths, true);
      text.index = step.index;
      text.t = step.t;
      observer(text);
    };
  }
  const LatentSamples result = sample_latents(model_, config_, draws, known, decode_step);
  forwards_ += result.forwards;
  rows_ += result.rows;
  if (!at::isfinite(result.latents).all().item<bool>()) {
    numerical_error("samples ", samples.front(), " to ", samples.back(),
                    ": the latents are not finite; are the weights, --sc-cfg and --cfg sane?");
  }
  return read(result.latents, lengths, false).ids;
}

SampleConditions Generator::encode(const std::vector<TokenIds>& conditions) const {
  if (codec_ == nullptr) usage_error("this model was trained without conditions; it takes no input");
  const int64_t rows = static_cast<int64_t>(conditions.size());
  // Only the condition is encoded, which sees nothing but itself: the positions behind the longest one of the
  // batch need no work.
  int64_t longest = 1;
  for (const TokenIds& condition : conditions) longest = std::max<int64_t>(longest, condition.size());
  if (longest > std::max<int64_t>(1, shape_.max_input_length))
    usage_error("a condition has ", longest, " tokens, at most ", shape_.max_input_length, " fit");
  const at::Tensor ids = at::full({rows, longest}, shape_.pad_id, at::kLong);
  const at::Tensor mask = at::zeros({rows, shape_.length}, at::kBool);
  for (int64_t b = 0; b < rows; ++b) {
    const TokenIds& condition = conditions[static_cast<size_t>(b)];
    std::copy(condition.begin(), condition.end(), ids.data_ptr<int64_t>() + b * longest);
    std::fill_n(mask.data_ptr<bool>() + b * shape_.length, condition.size(), true);
  }
  const at::Tensor seen = mask.slice(1, 0, longest).contiguous();
  const at::Tensor latents = codec_->encode(ids, encoder_mask(seen, seen)).to(device_);
  SampleConditions known;
  known.latents = at::zeros({rows, shape_.length, latents.size(2)}, latents.options());
  known.latents.slice(1, 0, longest).copy_(latents);
  known.mask = mask.to(device_);
  return known;
}

GeneratorStep Generator::read(const at::Tensor& latents, const std::vector<int64_t>& condition_lengths,
                              bool certainty) {
  const double w = ScaleSchedule::of(config_.self_cond_cfg, config_.self_cond_cfg_schedule, "sc-cfg").at(1.0);
  const Decoded decoded = decode(model_, latents, {.w = w, .certainty = certainty});
  ++forwards_;
  rows_ += latents.size(0);
  const auto target = [&](const at::Tensor& whole) {
    const at::Tensor host = whole.cpu();
    return condition_lengths.empty()
               ? host
               : target_part(host, condition_lengths, shape_.length - shape_.max_input_length);
  };
  GeneratorStep step{0, 0.0, cut_at_eos(target(decoded.ids), shape_.eos_id), {}, {}};
  if (!certainty) return step;
  const auto lists = [&](const at::Tensor& whole) {
    const at::Tensor values = target(whole).contiguous();
    std::vector<std::vector<float>> result;
    for (size_t b = 0; b < step.ids.size(); ++b) {
      const float* row = values.data_ptr<float>() + static_cast<int64_t>(b) * values.size(1);
      result.emplace_back(
          row, row + std::min<int64_t>(values.size(1), static_cast<int64_t>(step.ids[b].size()) + 1));
    }
    return result;
  };
  step.confidence = lists(decoded.confidence);
  step.entropy = lists(decoded.entropy);
  return step;
}

}  // namespace elf
