// Model FLOPs: the multiplications and additions that the mathematics needs, whatever an implementation does
// beyond them.
#pragma once

#include <cstdint>

#include "elf/config/flow_config.h"
#include "elf/config/model_config.h"

namespace elf {

struct RowFlops {
  double trunk;         // everything up to the features, forward
  double denoise_head;  // forward
  double decode_head;   // forward
};

// Of one row of `length` data tokens; matrix products and attention, 2 FLOPs a multiply-add.
RowFlops forward_flops(const ModelConfig& model, int64_t length, bool self_cond);

// Rows of a training step, and how many of them are in decode mode and have the coin of self-conditioning.
struct StepRows {
  double all, decode, coin;
};

// Of the network in a training step of rows of `length` (docs/ALGORITHM.md section 3, "Note what follows"):
// one forward and backward, plus the no-gradient forward of the rows with the coin.
double step_flops(const ModelConfig& model, bool self_cond, const StepRows& rows, int64_t length);

// Expected of one row of a training step.
double training_flops(const ModelConfig& model, const FlowConfig& flow, int64_t length);

}  // namespace elf
