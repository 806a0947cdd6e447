// elf-eval table: records side by side.
#include <algorithm>
#include <memory>

#include "cli_core.h"
#include "elf/base/error.h"
#include "elf/base/outputs.h"
#include "eval_figures.h"
#include "text_tables.h"

namespace elf::app {
namespace {

struct Options {
  std::vector<std::string> records;
  std::string format = "markdown", output;
};

using Rows = std::vector<std::vector<std::string>>;

std::string cell(const EvalRecord& record, const char* figure) {
  const auto found = record.figures.find(figure);
  return found == record.figures.end() ? "" : figure_text(figure, found->second);
}

std::string samples_of(const EvalRecord& record) {
  const OrderedJson& json = record.json;
  if (record.command == "run") return cat(json["samples"].dump(), " x ", json["seeds"].size());
  return json["inputs"][0]["records"].dump();
}

Rows rows_of(const std::vector<EvalRecord>& records) {
  std::vector<const FigureStyle*> shown;
  for (const FigureStyle& style : figure_styles()) {
    const auto has = [&](const EvalRecord& record) { return record.figures.contains(style.figure); };
    if (std::ranges::any_of(records, has)) shown.push_back(&style);
  }
  Rows rows(1);
  rows[0] = {"record", "samples"};
  for (const FigureStyle* style : shown) rows[0].emplace_back(style->title);
  rows[0].emplace_back("");
  for (const EvalRecord& record : records) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {record.label, samples_of(record)};
    for (const FigureStyle* style : shown) row.push_back(cell(record, style->figure));
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

EvalCommand add_table_command(Command& eval) {
  const auto options = std::make_shared<Options>();
  Command* command = eval.add_subcommand("table", "Records of elf-eval (--json, run) side by side");
  command->add_option("RECORD", options->records, "Files with a record each, or one a line")->required();
  command->add_option("--format", options->format, "markdown or csv")
      ->one_of({"markdown", "csv"})
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
