// elf-train: a configuration in, a run folder out.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli.h"
#include "elf/app/tools.h"
#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/config/run_config.h"
#include "elf/train/run_plan.h"
#include "elf/train/trainer.h"

namespace elf::app {
namespace {

constexpr const char* kExamples =
    "  elf-train --config configs/nano-verses.yaml\n"
    "  elf-train --config configs/nano-verses.yaml --set train.minutes=30 --set train.seed=1 --out "
    "runs/verses-long\n"
    "  elf-train --config configs/elf-b-owt.yaml --dry-run\n"
    "Stop with Ctrl-C (saves, exit code 85); the same command goes on where it stopped.\n";

constexpr int kStoppedAfterSaving = 85;

struct Options {
  CommonOptions common;
  std::string config, out, resume = "auto";
  std::vector<std::string> assignments;
  bool dry_run = false, json = false, help_config = false;
};

void print_plan(const RunPlan& plan, bool as_json) {
  const nlohmann::ordered_json object = {{"config", nlohmann::ordered_json::object()},
                                         {"parameters", plan.parameters},
                                         {"steps", plan.steps},
                                         {"tokens", plan.tokens},
                                         {"memory_gib", plan.memory_gib}};
  if (as_json) {
    auto printed = object;
    for (const auto& [key, value] : flat_fields(plan.config)) printed["config"][key] = value;
    std::cout << printed.dump(2) << "\n";
    return;
  }
  std::cout << to_yaml(plan.config) << "\n";
  std::printf("# parameters   %.2f M\n", static_cast<double>(plan.parameters) / 1e6);
  if (plan.steps > 0) {
    std::printf("# steps        %lld (%.3g tokens%s)\n", static_cast<long long>(plan.steps), plan.tokens,
                plan.train ? "" : "; the dataset is not there");
  } else {
    std::printf("# steps        %s\n", plan.config.train.minutes > 0 ? "as many as fit in train.minutes"
                                                                     : "not known: the dataset is not there");
  }
  std::printf("# memory       %.2f GiB (estimate)\n", plan.memory_gib);
}

}  // namespace

int train(int argc, char** argv) {
  CLI::App app{"Trains an ELF from a YAML configuration.", "elf-train"};
  Options options;
  app.add_option("--config", options.config, "Configuration file (see configs/)");
  app.add_option("--set", options.assignments, "SECTION.KEY=VALUE, wins over the file; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--out", options.out, "Run folder (train.out)");
  app.add_option("--resume", options.resume,
                 "auto: go on from the run folder's newest whole checkpoint; never: refuse such a folder")
      ->check(CLI::IsMember({"auto", "never"}))
      ->capture_default_str();
  app.add_flag("--dry-run", options.dry_run,
               "Print the resolved configuration, parameters, steps, tokens and memory; train nothing");
  app.add_flag("--json", options.json, "With --dry-run: one JSON object");
  app.add_flag("--help-config", options.help_config,
               "Print every configuration key with type, default, range and meaning");
  add_common_options(app, options.common);
  with_examples(app, kExamples);

  bool stopped = false;
  const int code = run(app, options.common, argc, argv, [&] {
    if (options.help_config) {
      std::cout << describe_fields();
      return;
    }
    if (options.config.empty())
      usage_error("--config FILE is missing; configs/ holds examples, --help-config lists the keys");
    if (!options.out.empty()) options.assignments.push_back("train.out=" + options.out);
    const RunPlan plan = plan_run(load_run_config(options.config, options.assignments), options.dry_run);
    if (options.dry_run) return print_plan(plan, options.json);
    Trainer trainer(plan, options.common.device(), options.resume == "auto" ? Resume::kAuto : Resume::kNever);
    const TrainOutcome outcome = trainer.run();
    stopped = outcome.stopped_by_signal;
    if (stopped)
      log_info(
          cat("stopped by a signal at step ", outcome.step, ", saved; the same command goes on from there"));
  });
  return code == 0 && stopped ? kStoppedAfterSaving : code;
}

}  // namespace elf::app
