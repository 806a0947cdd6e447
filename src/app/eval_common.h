// What the commands of elf-eval share: reading texts, printing figures with what produced them.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "command_line.h"

namespace elf::app {

using OrderedJson = nlohmann::ordered_json;

// A subcommand and what it does once its options are parsed.
struct EvalCommand {
  Command* command;
  std::function<void()> run;
};

EvalCommand add_bleu_command(Command& eval);
EvalCommand add_rouge_command(Command& eval);
EvalCommand add_diversity_command(Command& eval);
EvalCommand add_match_command(Command& eval);
EvalCommand add_ngram_command(Command& eval);
EvalCommand add_table_command(Command& eval);
EvalCommand add_frontier_command(Command& eval);

// Of the JSON that every command prints (docs/EVALUATION.md).
constexpr const char* kRecordVersion = "elf-eval 1";

struct EvalOptions {
  bool json = false;
  std::string output;          // empty: stdout
  std::string field = "text";  // of JSONL records
};
void add_eval_options(Command& command, EvalOptions& options);

// A file of texts in memory.
struct Texts {
  std::string role, file;  // role: the option that named it, "hyp"
  std::vector<std::string> records;
};

// One text a line, or the given field of each JSONL record (by the file's name, or because its first line is
// such a record). Throws Error (usage): missing or empty file, bad text, missing field.
Texts read_texts(const std::string& role, const std::string& file, const EvalOptions& options);

// Throws Error (usage) naming both files and both counts.
void require_equal_counts(const Texts& first, const Texts& second);

// What elf-sample wrote beside its samples (FILE.json): model, weights, sampler, seed; null when there is
// none.
OrderedJson generation_of(const std::string& samples);

// The figures as one record (JSON), with the command, the tool's version, the digest of each file and what
// made the first of them added, or the table for people.
void print_figures(const EvalOptions& options, const std::string& command, OrderedJson figures,
                   const std::vector<const Texts*>& inputs, const std::string& table);

// To the file, or to standard output when its name is empty.
void write_result(const std::string& output, const std::string& text);

// Rows with columns padded to equal width: the first to the left, the others to the right.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

std::string fixed(double value, int digits);
std::string percent(double share);       // "12.3 %"
std::string short_number(double value);  // "1.23 M", of 1,234,567

}  // namespace elf::app
