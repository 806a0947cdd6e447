// `train:` how long, how much at a time, what is logged and saved.
#pragma once

#include <cstdint>
#include <string>

namespace elf {

enum class Precision {
  kAuto,
  kFloat32,
  kBf16
};  // auto: bf16 on CUDA, float32 on the CPU | float32 | bf16: blocks in bfloat16, the rest in float32

// flow: the objective of docs/ALGORITHM.md section 3 | distillation: that of section 5
enum class TrainObjective { kFlow, kDistillation };

struct TrainConfig {
  TrainObjective objective = TrainObjective::kFlow;
  std::string init_from;  // run, checkpoint or model directory whose averages are the first weights; "" =
                          // random (distillation: those of the teacher)
  std::string out = "runs/elf";  // run folder
  uint64_t seed = 0;
  int64_t global_batch_size = 512;  // rows of one optimiser step
  int64_t micro_batch_size =
      0;               // rows of one forward; 0 = the whole step at once. The result does not depend on it
  double epochs = 5;   // length of the run, unless steps or minutes is given
  int64_t steps = 0;   // > 0: this many optimiser steps
  double minutes = 0;  // > 0: as many steps as fit, by the measured time of the first ones; the number is
                       // then fixed and saved
  int64_t log_every = 50;                  // steps
  int64_t valid_every = 1000;              // 0 = only at the end
  int64_t valid_batches = 0;               // 0 = the whole validation set
  int64_t save_every = 1000;               // 0 = only at the end
  bool save_in_background = true;          // where there is memory for a copy of the state
  int64_t keep_last = 2;                   // checkpoints kept beside the best
  int64_t keep_every = 0;                  // > 0: those of steps that this divides stay as well
  std::string best_metric = "valid_loss";  // of validation, samples or hook: what `best` is the best by
  double best_min_entropy = 0;             // floor of sample_entropy under which nothing is best
  int64_t patience = 0;                    // > 0: end after so many validations in a row without a new best
  int64_t max_skipped_steps = 3;           // non-finite steps in a row that end the run
  double spike_factor = 3;                 // a loss so many times the running mean is reported; 0 = never
  int64_t sample_every = 0;                // steps between samples and their scores; 0 = none
  int64_t sample_count = 16;
  std::string hook;  // shell command that the first rank runs after a checkpoint; see docs/TRAINING.md
  bool tensorboard = true;
  std::string stop_signals = "TERM USR1";  // save and end with exit code 85, besides INT
  double collective_timeout = 600;         // seconds that ranks wait for each other
  double first_rank_timeout = 3600;  // seconds that they wait for what the first rank does alone: saving
  Precision precision = Precision::kAuto;
  bool tf32 = true;        // CUDA: float32 matrix products may round their inputs to TF32
  bool recompute = false;  // blocks run again in the backward pass: less memory, a third more time

  bool operator==(const TrainConfig&) const = default;
};

}  // namespace elf
