// train.objective: distillation, as the trainer sees it: a frozen teacher, and the loss of
// flow/distillation.h for one round.
#pragma once

#include <filesystem>
#include <string>

#include "elf/flow/distillation.h"
#include "elf/model/model_dir.h"
#include "elf/train/training_objective.h"

namespace elf {

// Its weight is the number of rows. Network and codec must outlive it.
class DistillationObjective final : public TrainingObjective {
 public:
  // `config` has one round (see train/distillation_rounds.h). Loads distillation.teacher. Throws Error
  // (usage) when the teacher does not fit: another network, latents, tokenizer or noise.
  DistillationObjective(ElfNet& network, LatentCodec& codec, const RunConfig& config);

  double weight(const Batch& batch) const override;
  Loss loss(const Batch& batch, int64_t step, double whole) override;

 private:
  ElfNet& network_;
  LatentCodec& codec_;
  RunConfig config_;
  DistillationRound round_;
  Model teacher_;
};

}  // namespace elf
