// The network as a function: all that the objective and the samplers know of it. Tests put analytic denoisers
// here.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace elf {

struct DenoiserInput {
  at::Tensor z;          // [B, L, D] f32 noisy latents
  at::Tensor self_cond;  // [B, L, D] f32 the self-condition half; undefined: the network is run without that
                         // half (input D wide)
  at::Tensor t;          // [B] f32 flow time in [0, 1]; 0 = noise, 1 = data
  at::Tensor w;          // [B] f32 self-condition CFG scale; undefined for networks without SC-CFG tokens
  at::Tensor mode;       // [B] f32 gate of the mode tokens: 1 = decode, 0 = denoise; undefined: 0 everywhere
  at::Tensor key_mask;   // [B, L] bool, true = may be attended to; undefined (always, in training and
                         // sampling): every key
  bool dropout = false;  // a training forward: dropout acts, in a network that has it and was given a key
};

class Denoiser {
 public:
  virtual ~Denoiser() = default;

  // [B, L, F]: what both heads read; F is the network's own. Differentiable when gradients are enabled.
  virtual at::Tensor features(const DenoiserInput& input) = 0;
  // [..., F] -> [..., D]: the prediction, of x or of what x_from_output makes x of.
  virtual at::Tensor denoise_head(const at::Tensor& features) = 0;
  // The x-prediction that an output [..., D] of the denoise head stands for, at z [..., D] and t [B] ([n] for
  // [n, D]).
  virtual at::Tensor x_from_output(const at::Tensor& output, const at::Tensor& z, const at::Tensor& t) {
    (void)z, (void)t;
    return output;
  }
  // [..., F] -> [..., V]: logits of the tokens.
  virtual at::Tensor decode_head(const at::Tensor& features) = 0;
  // The weights that decode_head reads. Without them a cross-entropy over many positions, which is computed
  // in pieces, gives them no gradient.
  virtual std::vector<at::Tensor> decode_weights() const { return {}; }

  // [B, L, D]: the prediction of x as one call, which a decorator may make in another way.
  virtual at::Tensor x_hat(const DenoiserInput& input) {
    return x_from_output(denoise_head(features(input)), input.z, input.t);
  }
  at::Tensor logits(const DenoiserInput& input) { return decode_head(features(input)); }
};

}  // namespace elf
