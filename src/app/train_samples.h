// Samples of a run while it trains.
#pragma once

#include "elf/train/trainer.h"

namespace elf::app {

// Draws train.sample_count samples by the `sampling:` section, always the same indices: from noise, or for
// the first conditions of the held-out pairs. Figures: entropy, distinct-2, blank ones; for pairs BLEU and
// exact matches. Null without train.sample_every.
SampleHook make_sample_hook(const RunPlan& plan);

}  // namespace elf::app
