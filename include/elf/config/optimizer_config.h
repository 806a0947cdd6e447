// `optimizer:` update rule, learning rate, averaging (docs/ALGORITHM.md section 3, "Optimiser").
#pragma once

#include <cstdint>

namespace elf {

enum class OptimizerKind { kMuon, kAdamW };  // muon: Muon for matrices, Nesterov Adam for the rest | adamw
enum class LrSchedule {
  kConstant,
  kCosine,
  kLinear
};  // after the warm-up: constant | cosine to min_lr | linear to min_lr

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kMuon;
  double blr = 0.001;  // effective lr = blr * global batch / 256 (batch 512: 0.002) ...
  double lr = 0.0;     // ... unless lr > 0, which is then taken as it is
  LrSchedule schedule = LrSchedule::kConstant;
  double min_lr = 0.0;         // where cosine and linear end
  int64_t warmup_steps = 0;    // linear from 0, in optimiser steps
  double warmup_epochs = 0.0;  // used when warmup_steps = 0
  double grad_clip = 1.0;      // global norm; 0 = no clipping
  double weight_decay = 0.0;   // AdamW only, decoupled
  double adam_b1 = 0.9;        // AdamW's betas; Muon's companion, Nesterov Adam, always has 0.9, 0.999
  double adam_b2 = 0.95;
  double muon_momentum = 0.95;
  double ema_decay = 0.9999;
  bool ema_warmup = false;  // decay of step k is min(ema_decay, (1 + k) / (10 + k)): for short runs

  bool operator==(const OptimizerConfig&) const = default;
};

}  // namespace elf
