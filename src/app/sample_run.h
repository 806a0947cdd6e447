// One setting of elf-sample from jobs to finished files.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "elf/model/model_dir.h"
#include "sample_jobs.h"
#include "sample_options.h"
#include "sample_ranks.h"

namespace elf::app {

// What a run gave, for its record and the closing line.
struct SampleTotals {
  int64_t samples = 0;             // records of the output, those kept by --resume included
  int64_t resumed = 0;             // of them
  int64_t empty = 0;               // texts of blanks only
  int64_t forwards = 0, rows = 0;  // network calls of this run on all ranks, and rows summed over them
  double seconds = 0;
};

// Makes the samples of `source` with the settings of `point`, writes them in order, and beside a file the
// record of how they were made. All ranks call it; the first one writes. Throws Error.
SampleTotals run_samples(const SampleOptions& options, const Model& model, const SweepPoint& point,
                         JobSource& source, SampleRanks& ranks);

}  // namespace elf::app
