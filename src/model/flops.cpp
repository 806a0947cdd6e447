#include "elf/model/flops.h"

namespace elf {

RowFlops forward_flops(const ModelConfig& model, int64_t length, bool self_cond) {
  const auto hidden = static_cast<double>(model.hidden_size), latent = static_cast<double>(model.latent_dim);
  const auto tokens = static_cast<double>(length + model.num_prefix_tokens());
  const auto data = static_cast<double>(length), bottleneck = static_cast<double>(model.bottleneck_dim);
  const double inner = static_cast<double>(
      static_cast<int64_t>(static_cast<double>(static_cast<int64_t>(hidden * model.mlp_ratio)) * 2 / 3));
  const double block = 2 * tokens * (4 * hidden * hidden + 3 * hidden * inner) + 4 * tokens * tokens * hidden;
  const double input =
      2 * data * ((self_cond ? 2 * latent * latent : 0) + latent * bottleneck + bottleneck * hidden);
  const auto depth = static_cast<double>(model.depth);
  const bool modulated = model.conditioning == Conditioning::kAdaLnZero;
  const double modulations = modulated ? 2 * hidden * hidden * (6 * depth + 2) : 0;
  return {.trunk = depth * block + input + modulations,
          .denoise_head = 2 * data * hidden * latent,
          .decode_head = 2 * data * (hidden * latent + latent * static_cast<double>(model.vocab_size))};
}

double step_flops(const ModelConfig& model, bool self_cond, const StepRows& rows, int64_t length) {
  const RowFlops row = forward_flops(model, length, self_cond);
  return 3 * (rows.all * row.trunk + (rows.all - rows.decode) * row.denoise_head +
              rows.decode * row.decode_head) +
         rows.coin * (row.trunk + row.denoise_head);
}

double training_flops(const ModelConfig& model, const FlowConfig& flow, int64_t length) {
  const bool self_cond = flow.self_cond_prob > 0;
  const StepRows expected{1, flow.decoder_prob, (1 - flow.decoder_prob) * flow.self_cond_prob};
  return step_flops(model, self_cond, expected, length);
}

}  // namespace elf
