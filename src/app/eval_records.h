// Records of elf-eval, read back: checked against docs/record.schema.json, figures by name.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "eval_common.h"

namespace elf::app {

// A figure of a record. standard_error: only where it is a mean over seeds.
struct RecordFigure {
  double mean = 0;
  std::optional<double> standard_error;
};

struct EvalRecord {
  std::string place;  // "scores/sde-32.json", "scores.jsonl:3"
  OrderedJson json;
  std::string command;                          // "bleu"
  std::string label;                            // what was scored: "verses sde-32-w3"
  std::map<std::string, RecordFigure> figures;  // "bleu", "ppl", "entropy", "rouge1"; shares as they are
  bool degenerate = false;
};

// One file: a record as JSON, or one a line. Throws Error (usage) naming file, line and what is wrong.
std::vector<EvalRecord> read_eval_records(const std::string& file);

// What is wrong with a record by the schema, "" when nothing is: "key 'entropy' is missing", "/scorer/dtype:
// breaks the rule 'enum'".
std::string record_fault(const OrderedJson& record);

}  // namespace elf::app
