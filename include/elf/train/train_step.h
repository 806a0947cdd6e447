// One optimiser step: batches -> loss -> gradients -> update, over all ranks. Deterministic in (weights,
// batches, step number).
#pragma once

#include <functional>
#include <vector>

#include "elf/data/batch.h"
#include "elf/dist/gradient_sync.h"
#include "elf/dist/ranks.h"
#include "elf/model/elf_net.h"
#include "elf/optim/ema.h"
#include "elf/optim/optimizer.h"
#include "elf/train/training_objective.h"

namespace elf {

// What a step changes, and what it reads.
struct Learner {
  ElfNet& network;
  Optimizer& optimizer;
  Ema& ema;
  TrainingObjective& objective;
  double grad_clip = 1.0;  // largest global norm; 0 = no clipping
  Ranks& ranks;
  GradientSync& sync;
};

struct StepInput {
  const std::vector<Batch>& batches;  // this rank's micro-batches, at least one
  int64_t step = 0;                   // finished steps before this one: names the random numbers
  double lr = 0;
  std::function<bool()> stop_requested = nullptr;  // whether this rank was asked to end the run; asked last
};

// Equal on all ranks.
struct StepReport {
  double loss = 0, l2_loss = 0, ce_loss = 0;  // loss over the weight of the step; means over the rows of each
                                              // branch (0 without one)
  double accuracy = 0;                        // share of decode positions whose argmax is the token
  double grad_norm = 0;                       // before clipping
  double pad_fraction = 0;                    // share of positions that are padding
  bool finite = true;                         // false: nothing was updated
  bool stop = false;                          // some rank has been asked to end the run
  std::vector<int64_t> bad_rows = {};  // when not finite: dataset rows of micro-batches whose loss is not
};

// Runs the micro-batches of one step, normalises by the weight of all of them on all ranks, clips, updates
// weights and averages. A loss or gradient that is not finite on any rank leaves weights, averages and
// optimiser as they were on all of them.
StepReport train_step(Learner& learner, const StepInput& input);

}  // namespace elf
