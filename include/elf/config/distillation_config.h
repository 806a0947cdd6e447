// `distillation:` rounds of few-step students that learn from a frozen teacher (docs/ALGORITHM.md section 5).
// Read when train.objective is distillation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "elf/config/flow_config.h"

namespace elf {

struct DistillationConfig {
  std::string teacher;  // run, checkpoint or model directory; its averaged weights teach every round
  std::vector<int64_t> student_steps = {16, 8, 4, 2,
                                        1};  // one round each; a round starts from the one before
  std::vector<int64_t> teacher_steps = {4, 8, 16, 32, 64};  // of the teacher in one step of the student
  TimeDistribution student_schedule = TimeDistribution::kLogitNormal;  // where a student's step begins
  TimeDistribution teacher_schedule = TimeDistribution::kLogitNormal;  // the teacher's times inside that step
  // Sampling settings of each round: one value a round, one for all, or none (that of `sampling:`).
  std::vector<double> gamma = {2.0, 1.5, 1.5, 1.5, 1.5};
  std::vector<double> self_cond_cfg = {2.0, 2.5, 2.5, 2.5, 2.5};
  int64_t eval_samples = 1000;  // texts of each row of the closing table; 0 = no table
  std::string
      eval_text;  // the training text, a text a line, for the table's n-gram model; "" = diversity only

  bool operator==(const DistillationConfig&) const = default;
};

}  // namespace elf
