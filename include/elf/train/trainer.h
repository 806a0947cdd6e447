// The training loop: steps, logging, validation, checkpoints, resume.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

#include "elf/train/run_plan.h"

namespace elf {

enum class Resume {
  kAuto,
  kNever
};  // go on from the newest checkpoint of the run folder, if there is one | refuse a folder that holds one

struct TrainOutcome {
  int64_t step = 0;
  bool stopped_by_signal = false;  // saved; the same command goes on
};

class Trainer {
 public:
  // Builds network, optimiser, averages and encoder, makes the run folder (config.train.out) with its own
  // copies of tokenizer and encoder, and resumes. Throws Error (usage) when the folder holds another run.
  Trainer(const RunPlan& plan, at::Device device, Resume resume);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Trains to the end. SIGINT and SIGTERM end the run after the step in hand, with a checkpoint; a second
  // SIGINT ends it at once. Throws Error (numerical) after train.max_skipped_steps non-finite steps in a row.
  TrainOutcome run();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace elf
