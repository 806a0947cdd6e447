#include "train_verify.h"

#include <ATen/ATen.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "child_process.h"
#include "elf/app/tools.h"
#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/base/log.h"
#include "elf/train/checkpoint.h"

namespace elf::app {
namespace fs = std::filesystem;
using json = nlohmann::json;
namespace {

// Numbers of starts that no launcher reaches: the children of each phase meet under keys of their own.
constexpr int64_t kFirstStart = 1000000;

// What may differ between two equal runs: how long things took.
const std::set<std::string> kOfTheClock = {"tokens_per_second", "mfu", "data_wait", "peak_memory_mib",
                                           "trained_seconds"};

void run_child(const std::vector<std::string>& arguments, int64_t start, int expected_code) {
  ChildOptions options;
  options.command = {sibling_tool("elf-train")};
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  for (const char* name : {"TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"})
    options.environment.emplace_back(name, std::to_string(start));
  const int code = ChildProcess(options).wait();
  if (code != expected_code)
    environment_error("--verify-resume: a training run ended with exit code ", code, ", expected ",
                      expected_code);
}

void compare(const TensorMap& a, const TensorMap& b, const std::string& what, Verdict& verdict) {
  for (const auto& [name, tensor] : a) {
    ++verdict.tensors;
    const auto other = b.find(name);
    if (other == b.end() || !at::equal(tensor, other->second)) verdict.different.push_back(what + "/" + name);
  }
  for (const auto& [name, tensor] : b) {
    if (!a.count(name)) verdict.different.push_back(what + "/" + name);
  }
}

json without_times(json object) {
  for (const std::string& name : kOfTheClock) object.erase(name);
  return object;
}

std::map<std::string, json> metrics_of(const fs::path& run) {
  std::map<std::string, json> lines;
  std::istringstream text(read_file(run / "metrics.jsonl"));
  int64_t number = 0;
  for (std::string line; std::getline(text, line); ++number) {
    const json parsed = parse_json_or_throw(line);
    lines[cat("metrics.jsonl/line ", number, "/step ", parsed.at("step"))] = without_times(parsed);
  }
  return lines;
}

Verdict compare_runs(const fs::path& a, const fs::path& b, int64_t steps) {
  Verdict verdict;
  const Checkpoint one = load_checkpoint(checkpoint_path(a / "checkpoints", steps));
  const Checkpoint two = load_checkpoint(checkpoint_path(b / "checkpoints", steps));
  compare(one.model, two.model, "model", verdict);
  compare(one.ema, two.ema, "ema", verdict);
  compare(one.optimizer, two.optimizer, "optimizer", verdict);
  const json left = without_times(one.state), right = without_times(two.state);
  for (const auto& [name, value] : left.items()) {
    if (value != right.value(name, json())) verdict.different.push_back("state.json/" + name);
  }
  const auto straight = metrics_of(a), resumed = metrics_of(b);
  for (const auto& [name, line] : straight) {
    if (!resumed.count(name) || resumed.at(name) != line) verdict.different.push_back(name);
  }
  for (const auto& [name, line] : resumed) {
    if (!straight.count(name)) verdict.different.push_back(name);
  }
  return verdict;
}

}  // namespace

Verdict verify_resume(const RunPlan& plan, const Launch& launch, const std::vector<std::string>& arguments,
                      int64_t steps) {
  if (steps < 2) usage_error("--verify-resume: found ", steps, ", expected 2 steps or more");
  const fs::path folder = plan.config.train.out + ".verify-resume";
  const bool first = launch.rank == 0;
  if (first) fs::remove_all(folder);
  const auto child = [&](const char* name, int64_t stop_after) {
    std::vector<std::string> all = arguments;
    for (const std::string& more :
         {std::string("--out"), (folder / name).string(), std::string("--set"), cat("train.steps=", steps),
          std::string("--set"), std::string("train.minutes=0"), std::string("--set"),
          std::string("train.patience=0"), std::string("--set"), std::string("train.log_every=1")})
      all.push_back(more);
    if (stop_after > 0) {
      all.push_back("--stop-after");
      all.push_back(std::to_string(stop_after));
    }
    return all;
  };
  int64_t start = kFirstStart + 10 * launch.restart;
  run_child(child("straight", 0), start, 0);
  run_child(child("resumed", steps / 2), start + 1, kStoppedAfterSaving);
  run_child(child("resumed", 0), start + 2, 0);
  if (!first) return {};
  const Verdict verdict = compare_runs(folder / "straight", folder / "resumed", steps);
  if (verdict.equal()) fs::remove_all(folder);
  return verdict;
}

}  // namespace elf::app
