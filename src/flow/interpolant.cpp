#include "elf/flow/interpolant.h"

#include <ATen/ATen.h>

#include <cmath>

namespace elf {
namespace {

constexpr double kSmallestTime = 0.05;  // below it x is not divided out of z

}  // namespace

at::Tensor broadcast_rows(const at::Tensor& row, const at::Tensor& like) {
  std::vector<int64_t> sizes = row.sizes().vec();
  sizes.resize(static_cast<size_t>(like.dim()), 1);
  return row.reshape(sizes);
}

at::Tensor training_time(const at::Tensor& raw, const FlowConfig& config) {
  if (config.time_schedule == TimeDistribution::kUniform) return raw;
  return at::sigmoid(raw * config.denoiser_p_std + config.denoiser_p_mean);
}

at::Tensor self_cond_scale(const at::Tensor& u, const FlowConfig& config) {
  const double low = 1.0 + config.self_cond_cfg_min, high = 1.0 + config.self_cond_cfg_max;
  return at::exp(u * std::log(high / low)) * low - 1.0;
}

at::Tensor corruption_level(const at::Tensor& normal, const FlowConfig& config) {
  return at::sigmoid(normal * config.decoder_p_std + config.decoder_p_mean);
}

at::Tensor mix_noise(const at::Tensor& x, const at::Tensor& t, const at::Tensor& eps, double noise_scale) {
  const at::Tensor share = broadcast_rows(t, x);
  return share * x + ((1.0 - share) * noise_scale) * eps;
}

at::Tensor velocity(const at::Tensor& x, const at::Tensor& z, const at::Tensor& t, double t_eps) {
  return (x - z) / at::clamp_min(1.0 - broadcast_rows(t, x), t_eps);
}

at::Tensor x_from_prediction(Prediction kind, const at::Tensor& output, const at::Tensor& z,
                             const at::Tensor& t) {
  if (kind == Prediction::kX) return output;
  const at::Tensor share = broadcast_rows(t, z);
  if (kind == Prediction::kV) return z + (1.0 - share) * output;
  return (z - (1.0 - share) * output) / at::clamp_min(share, kSmallestTime);
}

}  // namespace elf
