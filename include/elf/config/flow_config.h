// `flow:` noise, guidance and the two branches of the training objective (docs/ALGORITHM.md section 3).
#pragma once

#include <string>

namespace elf {

enum class TimeDistribution { kLogitNormal, kUniform };  // logit_normal | uniform
enum class PadToken {
  kPad,
  kEos
};  // pad: padding stays out of the loss | eos: padding is EOS and is learned
enum class Branch {
  kPerExample,
  kPerStep
};  // per_example: each row draws its branch | per_step: one draw a step
enum class DecodeCondition {
  kNoisy,
  kClean
};  // noisy: condition corrupted in the decode branch (published) | clean

struct FlowConfig {
  TimeDistribution time_schedule = TimeDistribution::kLogitNormal;  // of t in training
  double denoiser_p_mean = -1.5;                                    // t = sigmoid(N(mean, std^2))
  double denoiser_p_std = 0.8;
  double denoiser_noise_scale = 2.0;  // s: z = t x + (1 - t) s eps
  double t_eps = 0.05;                // floor of 1 - t in velocities
  double decoder_prob = 0.2;          // probability of the decode branch, in [0, 1]
  double decoder_noise_scale = 5.0;   // s_dec: 5.0 on OpenWebText, 1.0 on WMT14 and XSum
  double decoder_p_mean = 0.8;        // p = sigmoid(N(mean, std^2)) per token
  double decoder_p_std = 0.8;
  double decoder_mask_prob =
      0.0;  // share of tokens of which the decode branch sees noise only; 0.2 for a decoder trained apart
  double self_cond_prob = 0.5;     // 0 = no self-conditioning
  double self_cond_cfg_min = 0.5;  // w is log-uniform in 1 + w between these
  double self_cond_cfg_max = 5.0;
  double label_drop_prob = 0.0;  // conditional tasks: 0.1 published
  PadToken pad_token = PadToken::kPad;
  Branch branch = Branch::kPerExample;
  DecodeCondition decode_condition = DecodeCondition::kNoisy;

  bool operator==(const FlowConfig&) const = default;
};

}  // namespace elf
