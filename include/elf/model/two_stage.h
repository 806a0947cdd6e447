// Two networks in the place of one: the denoiser walks from noise to latents, the decoder, which was trained
// for nothing else, reads tokens off them.
#pragma once

#include "elf/flow/denoiser.h"

namespace elf {

// Inputs with a mode go to the decoder, those without to the denoiser. The mode must be 1 everywhere; it is
// looked at on the CPU only, for elsewhere that would wait for the device. Both must outlive it.
class TwoStageDenoiser final : public Denoiser {
 public:
  // `decoder_self_cond`: the decoder was trained with a self-condition half.
  TwoStageDenoiser(Denoiser& denoiser, Denoiser& decoder, bool decoder_self_cond)
      : denoiser_(denoiser), decoder_(decoder), decoder_self_cond_(decoder_self_cond) {}

  at::Tensor features(const DenoiserInput& input) override;
  at::Tensor denoise_head(const at::Tensor& features) override { return denoiser_.denoise_head(features); }
  at::Tensor decode_head(const at::Tensor& features) override { return decoder_.decode_head(features); }
  at::Tensor x_from_output(const at::Tensor& output, const at::Tensor& z, const at::Tensor& t) override {
    return denoiser_.x_from_output(output, z, t);
  }
  std::vector<at::Tensor> decode_weights() const override { return decoder_.decode_weights(); }

 private:
  Denoiser& denoiser_;
  Denoiser& decoder_;
  bool decoder_self_cond_;
};

}  // namespace elf
