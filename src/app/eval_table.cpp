// elf-eval table: records side by side.
#include <algorithm>
#include <memory>

#include "cli_core.h"
#include "elf/base/error.h"
#include "elf/base/outputs.h"
#include "eval_records.h"
#include "text_tables.h"

namespace elf::app {
namespace {

struct Options {
  std::vector<std::string> records;
  std::string format = "markdown", output;
};

struct Column {
  const char *figure, *title;
  int digits;
  double factor;
};
// In the order in which they stand; those without any value are left out.
constexpr Column kColumns[] = {{"bleu", "BLEU", 2, 1},
                               {"bleu_lower_cased", "BLEU lc", 2, 1},
                               {"bleu_published", "BLEU lc, eff", 2, 1},
                               {"chrf2", "chrF2", 2, 1},
                               {"chrf2++", "chrF2++", 2, 1},
                               {"ter", "TER", 2, 1},
                               {"rouge1", "R-1", 2, 1},
                               {"rouge2", "R-2", 2, 1},
                               {"rougeL", "R-L", 2, 1},
                               {"rougeLsum", "R-Lsum", 2, 1},
                               {"exact", "exact %", 1, 100},
                               {"exact_match", "exact %", 1, 100},
                               {"cer", "CER %", 1, 100},
                               {"character_error_rate", "CER %", 1, 100},
                               {"ppl", "Gen. PPL", 2, 1},
                               {"perplexity", "n-gram PPL", 2, 1},
                               {"entropy", "entropy", 3, 1},
                               {"corpus_entropy", "entropy, all words", 3, 1},
                               {"own_entropy", "entropy, own tokens", 3, 1},
                               {"distinct1", "distinct-1", 3, 1},
                               {"distinct2", "distinct-2", 3, 1},
                               {"distinct3", "distinct-3", 3, 1},
                               {"distinct4", "distinct-4", 3, 1},
                               {"rep4", "rep-4 %", 1, 100},
                               {"own_rep4", "rep-4 %, own tokens", 1, 100},
                               {"mean_length", "length", 1, 1},
                               {"own_mean_length", "length, own tokens", 1, 1},
                               {"blank", "blank", 1, 1},
                               {"exact_copies", "copies %", 1, 100},
                               {"new_trigrams", "new trigrams %", 1, 100},
                               {"mauve", "MAUVE", 4, 1}};

using Rows = std::vector<std::vector<std::string>>;

std::string cell(const EvalRecord& record, const Column& column) {
  const auto found = record.figures.find(column.figure);
  if (found == record.figures.end()) return "";
  std::string text = fixed(column.factor * found->second.mean, column.digits);
  if (found->second.standard_error)
    text += " ± " + fixed(column.factor * *found->second.standard_error, column.digits);
  return text;
}

std::string samples_of(const EvalRecord& record) {
  const OrderedJson& json = record.json;
  if (record.command == "run") return cat(json["samples"].dump(), " x ", json["seeds"].size());
  return json["inputs"][0]["records"].dump();
}

Rows rows_of(const std::vector<EvalRecord>& records) {
  std::vector<const Column*> shown;
  for (const Column& column : kColumns) {
    const auto has = [&](const EvalRecord& record) { return record.figures.contains(column.figure); };
    if (std::any_of(records.begin(), records.end(), has)) shown.push_back(&column);
  }
  Rows rows(1);
  rows[0] = {"record", "samples"};
  for (const Column* column : shown) rows[0].emplace_back(column->title);
  rows[0].emplace_back("");
  for (const EvalRecord& record : records) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {record.label, samples_of(record)};
    for (const Column* column : shown) row.push_back(cell(record, *column));
    row.emplace_back(record.degenerate ? "DEGENERATE" : "");
  }
  return rows;
}

void run_table(const Options& o) {
  refuse_overwriting(o.output, o.records);
  std::vector<EvalRecord> records;
  for (const std::string& file : o.records) {
    for (EvalRecord& record : read_eval_records(file)) records.push_back(std::move(record));
  }
  if (records.empty()) usage_error(o.records.front(), ": holds no record");
  const Rows rows = rows_of(records);
  write_result(o.output, o.format == "csv" ? csv_table(rows) : markdown_table(rows));
}

}  // namespace

EvalCommand add_table_command(CLI::App& eval) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = eval.add_subcommand("table", "Records of elf-eval (--json, run) side by side");
  command->add_option("RECORD", options->records, "Files with a record each, or one a line")->required();
  command->add_option("--format", options->format, "markdown or csv")
      ->check(CLI::IsMember({"markdown", "csv"}))
      ->capture_default_str();
  command->add_flag_callback(
      "--csv", [options] { options->format = "csv"; }, "--format csv");
  command->add_option("--output", options->output, "Write the table to this file instead of stdout");
  with_examples(*command,
                "  elf-eval table scores/*.json\n"
                "  elf-eval table scores/*.json --csv --output scores.csv");
  return {command, [options] { run_table(*options); }};
}

}  // namespace elf::app
