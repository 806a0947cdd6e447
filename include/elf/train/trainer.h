// The training loop: steps, logging, validation, checkpoints, resume; on one rank or many.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "elf/dist/ranks.h"
#include "elf/model/elf_net.h"
#include "elf/model/latent_codec.h"
#include "elf/train/run_folder.h"
#include "elf/train/run_plan.h"

namespace elf {

struct TrainOutcome {
  int64_t step = 0;
  bool stopped = false;  // by a signal or TrainOptions::stop_after, saved; the same command goes on
};

// What samples of the run say: figures for metrics ("sample_entropy", ...) and the texts.
struct SampleFigures {
  nlohmann::ordered_json figures;
  std::vector<std::string> texts;
};
// Draws them with the averaged weights, on the first rank, every train.sample_every steps.
using SampleHook =
    std::function<SampleFigures(const RunConfig& config, ElfNet& averaged, LatentCodec& codec, int64_t step)>;

struct TrainOptions {
  ResumeChoice resume;
  int64_t stop_after = 0;  // > 0: save and stop after this step, as a signal does
  SampleHook sample;       // null: train.sample_every does nothing
};

class Trainer {
 public:
  // Builds network, optimiser, averages and encoder, makes or opens the run folder (config.train.out), and
  // resumes: the first rank reads, the others receive. Throws Error (usage) when the folder holds another
  // run.
  Trainer(const RunPlan& plan, at::Device device, Ranks& ranks, TrainOptions options);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Trains to the end. INT and the signals of train.stop_signals, at any rank, end the run on all of them
  // after the step in hand, with a checkpoint; a second INT ends the process at once. Throws Error
  // (numerical) after train.max_skipped_steps non-finite steps in a row. On several ranks an error's message
  // begins with rank and step, and an error all ranks make is printed by the first alone.
  TrainOutcome run();

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace elf
