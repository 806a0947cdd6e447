// The loss on held-out data with fixed randomness: the same draws at every call, so that curves show the
// model and not the dice.
#pragma once

#include <cstdint>

#include "elf/config/run_config.h"
#include "elf/data/dataset.h"
#include "elf/dist/ranks.h"
#include "elf/model/elf_net.h"
#include "elf/model/latent_codec.h"

namespace elf {

struct ValidationReport {
  double loss = 0;      // (1 - decoder_prob) l2 + decoder_prob ce
  double l2_loss = 0;   // mean over the loss positions of all rows, each in the denoise branch
  double ce_loss = 0;   // the same rows, each in the decode branch
  double accuracy = 0;  // share of those positions whose argmax is the token
  int64_t rows = 0;
};

// Each row goes through both branches once, so every row counts in both terms. Draws are keyed by (seed,
// row). No gradients. The batches are divided among the ranks and their sums added in the order of the
// batches: every number of ranks gives the same figures.
ValidationReport run_validation(ElfNet& network, LatentCodec& codec, const Dataset& data, int64_t pad_id,
                                const RunConfig& config, Ranks& ranks);

}  // namespace elf
