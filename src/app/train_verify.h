// elf-train --verify-resume N: the proof that stopping changes nothing, for any configuration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "elf/dist/launch.h"
#include "elf/train/run_plan.h"

namespace elf::app {

struct Verdict {
  int64_t tensors = 0;                 // compared
  std::vector<std::string> different;  // names of tensors, fields of state.json and steps of metrics.jsonl
  bool equal() const { return tensors > 0 && different.empty(); }
};

// Trains `steps` steps in one process, and again as steps / 2, resume, the rest in two others (on every rank
// of `launch`), with the very arguments of this command; compares the last checkpoints and the metrics.
// `arguments`: of this command, --verify-resume left out. Works in a folder beside train.out, which stays
// when the verdict is "unequal". Only the first rank compares; the others return an empty verdict.
// Throws Error: a child failed; fewer than 2 steps.
Verdict verify_resume(const RunPlan& plan, const Launch& launch, const std::vector<std::string>& arguments,
                      int64_t steps);

}  // namespace elf::app
