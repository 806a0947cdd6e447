// One optimiser step: batches -> latents -> loss -> gradients -> update. Deterministic in (weights, batches,
// draws).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "elf/config/run_config.h"
#include "elf/data/batch.h"
#include "elf/flow/draws.h"
#include "elf/model/elf_net.h"
#include "elf/model/latent_codec.h"
#include "elf/optim/ema.h"
#include "elf/optim/optimizer.h"

namespace elf {

// What a step changes, and the frozen encoder it reads.
struct Learner {
  ElfNet& network;
  Optimizer& optimizer;
  Ema& ema;
  LatentCodec& codec;
};

struct StepReport {
  double loss = 0, l2_loss = 0, ce_loss = 0;  // loss over all loss positions of the step; means over the rows
                                              // of each branch (0 without one)
  double accuracy = 0;                        // share of decode positions whose argmax is the token
  double grad_norm = 0;                       // before clipping
  double pad_fraction = 0;                    // share of positions outside the loss
  bool finite = true;                         // false: nothing was updated
};

// The random numbers of a micro-batch.
using DrawFunction = std::function<StepDraws(const Batch&)>;

// Runs the micro-batches of one step, normalises by the loss positions of all of them, clips, updates weights
// and averages. A loss or gradient that is not finite leaves weights, averages and optimiser as they were.
StepReport train_step(Learner& learner, const RunConfig& config, const std::vector<Batch>& batches,
                      const DrawFunction& draws, double lr);

// Normalised latents [B, L, D] of a batch, conditions hidden from the targets of dropped rows; on the codec's
// device.
at::Tensor encode_batch(LatentCodec& codec, const Batch& batch, const at::Tensor& label_drop);

// The batch's tensors on `device`.
Batch to(const Batch& batch, at::Device device);

}  // namespace elf
