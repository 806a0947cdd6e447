// A denoiser whose predictions are replayed: on CUDA the network call of a sampling step is one graph
// (tensor/replay.h).
#pragma once

#include <memory>

#include "elf/config/sampling_config.h"
#include "elf/flow/denoiser.h"
#include "elf/tensor/replay.h"

namespace elf {

// The same results as `network`, which must outlive it and whose weights stay in their places and whose
// settings do not change meanwhile. Replays x_hat, the call of every step; features and heads are passed on.
class ReplayedDenoiser final : public Denoiser {
 public:
  // The recorder is that of the device, make_recorder(device). Without one (on the CPU), and where
  // config.cuda_graph is false, all calls are passed on.
  ReplayedDenoiser(Denoiser& network, const SamplingConfig& config, std::unique_ptr<Recorder> recorder);
  ReplayedDenoiser(const ReplayedDenoiser&) = delete;
  ReplayedDenoiser& operator=(const ReplayedDenoiser&) = delete;

  at::Tensor x_hat(const DenoiserInput& input) override;
  at::Tensor features(const DenoiserInput& input) override { return network_.features(input); }
  at::Tensor denoise_head(const at::Tensor& features) override { return network_.denoise_head(features); }
  at::Tensor decode_head(const at::Tensor& features) override { return network_.decode_head(features); }
  at::Tensor x_from_output(const at::Tensor& output, const at::Tensor& z, const at::Tensor& t) override {
    return network_.x_from_output(output, z, t);
  }
  std::vector<at::Tensor> decode_weights() const override { return network_.decode_weights(); }

 private:
  Denoiser& network_;
  Replayed replayed_;
};

}  // namespace elf
