// elf-train: a configuration in, a run folder out.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli.h"
#include "distill.h"
#include "elf/app/tools.h"
#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "elf/config/run_config.h"
#include "elf/train/distillation_rounds.h"
#include "elf/train/run_plan.h"
#include "elf/train/signals.h"
#include "elf/train/trainer.h"
#include "train_samples.h"
#include "train_verify.h"

namespace elf::app {
namespace {

constexpr const char* kExamples =
    "  elf-train --config configs/nano-verses.yaml\n"
    "  elf-train --config configs/nano-verses.yaml --set train.minutes=30 --set train.seed=1 --out "
    "runs/verses-long\n"
    "  elf-train --config configs/elf-b-owt.yaml --dry-run\n"
    "  elf-train --config configs/nano-verses.yaml --verify-resume 20\n"
    "  torchrun --no-python --nproc_per_node 8 elf-train --config configs/elf-b-owt.yaml\n"
    "Stop with Ctrl-C (saves, exit code 85); the same command goes on where it stopped. See "
    "docs/TRAINING.md.\n";

struct Options {
  CommonOptions common;
  std::string config, out, resume = "auto";
  std::vector<std::string> assignments;
  bool dry_run = false, json = false, help_config = false;
  int64_t stop_after = 0, verify_resume = 0;
};

void add_options(Command& app, Options& options) {
  app.add_option("--config", options.config, "Configuration file (see configs/)");
  app.add_option("--set", options.assignments, "SECTION.KEY=VALUE, wins over the file; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--out", options.out, "Run folder (train.out)");
  app.add_option("--resume", options.resume,
                 "auto: go on from the run folder's newest whole checkpoint; never: refuse a folder that "
                 "holds one; PATH: of a checkpoint or a run to go on from")
      ->capture_default_str();
  app.add_option("--stop-after", options.stop_after, "Save and stop after this step (exit code 85)")
      ->not_negative();
  app.add_option(
      "--verify-resume", options.verify_resume,
      "Train N steps, then N/2, resume and the rest, compare every tensor and say whether they are "
      "equal; trains nothing else. Exit code 3: unequal");
  app.add_flag("--dry-run", options.dry_run,
               "Print the resolved configuration, parameters, steps, tokens and memory; train nothing");
  app.add_flag("--json", options.json, "With --dry-run or --verify-resume: one JSON object");
  app.add_flag("--help-config", options.help_config,
               "Print every configuration key with type, default, range and meaning");
  add_common_options(app, options.common);
  with_examples(app, kExamples);
}

void print_plan(const RunPlan& plan, bool as_json) {
  nlohmann::ordered_json object = {{"config", nlohmann::ordered_json::object()},
                                   {"parameters", plan.parameters},
                                   {"steps", plan.steps},
                                   {"tokens", plan.tokens},
                                   {"memory_gib", plan.memory_gib},
                                   {"missing", plan.missing}};
  if (as_json) {
    for (const auto& [key, value] : flat_fields(plan.config)) object["config"][key] = value;
    std::cout << object.dump(2) << "\n";
    return;
  }
  std::cout << to_yaml(plan.config) << "\n";
  for (const std::string& missing : plan.missing) std::printf("# missing      %s\n", missing.c_str());
  std::printf("# parameters   %.2f M\n", static_cast<double>(plan.parameters) / 1e6);
  if (plan.steps > 0) {
    std::printf("# steps        %lld (%.3g tokens)\n", static_cast<long long>(plan.steps), plan.tokens);
  } else {
    std::printf("# steps        %s\n", plan.config.train.minutes > 0 ? "as many as fit in train.minutes"
                                                                     : "not known without the dataset");
  }
  std::printf("# memory       %.2f GiB on each of %lld ranks (estimate)\n", plan.memory_gib,
              static_cast<long long>(read_launch().size));
}

// Equal on all ranks that belong together, and on no others.
std::string job_of(const RunConfig& config, const std::string& data_hash) {
  std::string text = to_yaml(config) + data_hash;
  for (const char* name : {"TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "OMPI_MCA_ess_base_jobid"}) {
    const char* value = std::getenv(name);
    text += cat("\n", value == nullptr ? "" : value);
  }
  return digest(text);
}

// Does `work` with the ranks of this job, once a process: a second meeting at the same port would find what
// the first left there. When it fails here, the other ranks hear of it.
bool with_ranks(const RunConfig& config, const std::string& data_hash, const Options& options,
                const std::function<bool(at::Device, Ranks&)>& work) {
  const Launch launch = read_launch();
  const at::Device device = device_of_process(options.common.device_name, launch.local_rank);
  Ranks ranks(launch, device, job_of(config, data_hash),
              {.collective = config.train.collective_timeout, .first_rank = config.train.first_rank_timeout});
  if (!ranks.first()) set_log_level(LogLevel::kError);
  try {
    return work(device, ranks);
  } catch (const std::exception& error) {
    ranks.give_up(error.what());
    throw;
  }
}

// True: stopped before the end.
bool train_on(const RunPlan& plan, at::Device device, Ranks& ranks, const Options& options) {
  Trainer trainer(
      plan, device, ranks,
      {.resume = {options.resume}, .stop_after = options.stop_after, .sample = make_sample_hook(plan)});
  try {
    return trainer.run().stopped;
  } catch (const std::exception& error) {
    // Not only when the trainer is gone: it waits for a save in the background, and that takes longer than a
    // rank that has not given up may live after another one failed.
    ranks.give_up(error.what());
    throw;
  }
}

// All rounds, on all ranks. True: stopped before the end.
bool train_all_rounds(const RunConfig& config, const Options& options) {
  const std::string data_hash = plan_run(round_config(config, 0)).train->info().data_hash;
  return with_ranks(config, data_hash, options, [&](at::Device device, Ranks& ranks) {
    // A signal in the last step of a round stops no trainer: this one still knows of it.
    const SignalWatch signals(config.train.stop_signals);
    const auto train = [&](const RunConfig& round) {
      const bool stopped = train_on(plan_run(round), device, ranks, options);
      end_log_file();  // what is said next is about another run
      return !stopped;
    };
    const auto stop = [&] { return ranks.sum({signals.stop_requested() ? 1.0 : 0.0})[0] > 0; };
    return !train_rounds(config, train, stop);
  });
}

// All rounds, then their table, which the first rank makes. True: stopped before the end.
bool distil(const RunConfig& config, const Options& options) {
  if (train_all_rounds(config, options)) return true;
  const Launch launch = read_launch();
  if (launch.rank == 0 && config.distillation.eval_samples > 0) {
    const at::Device device = device_of_process(options.common.device_name, launch.local_rank);
    std::cout << evaluate_rounds(config, device) << std::flush;
  }
  return false;
}

// The command line without what --verify-resume sets itself.
std::vector<std::string> arguments_for_children(int argc, char** argv) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    bool own = argument == "--json";
    for (const char* option : {"--verify-resume", "--out", "--stop-after", "--resume"}) {
      if (argument.starts_with(std::string(option) + "=")) own = true;
      if (argument == option) {
        own = true;
        ++i;  // its value
      }
    }
    if (!own) arguments.push_back(argument);
  }
  return arguments;
}

// False: unequal.
bool verify(const RunPlan& plan, const Options& options, int argc, char** argv) {
  const std::vector<std::string> arguments = arguments_for_children(argc, argv);
  const Launch launch = read_launch();
  const Verdict verdict = verify_resume(plan, launch, arguments, options.verify_resume);
  if (launch.rank != 0) return true;
  if (options.json) {
    const nlohmann::ordered_json object = {
        {"equal", verdict.equal()}, {"tensors", verdict.tensors}, {"different", verdict.different}};
    std::cout << object.dump(2) << "\n";
  } else if (verdict.equal()) {
    std::printf("equal: %lld tensors, state and metrics after %lld steps, straight and resumed after %lld\n",
                static_cast<long long>(verdict.tensors), static_cast<long long>(options.verify_resume),
                static_cast<long long>(options.verify_resume / 2));
  } else {
    std::printf("unequal: %zu of %lld tensors and records differ\n", verdict.different.size(),
                static_cast<long long>(verdict.tensors));
    for (const std::string& name : verdict.different) std::printf("  %s\n", name.c_str());
  }
  return verdict.equal();
}

}  // namespace

int train(int argc, char** argv) {
  Command app{"Trains an ELF from a YAML configuration.", "elf-train"};
  Options options;
  add_options(app, options);
  bool stopped = false, unequal = false;
  const int code = run(app, options.common, argc, argv, [&] {
    if (options.help_config) {
      std::cout << describe_fields();
      return;
    }
    if (options.config.empty())
      usage_error("--config FILE is missing; configs/ holds examples, --help-config lists the keys");
    if (!options.out.empty()) options.assignments.push_back("train.out=" + options.out);
    const RunConfig config = load_run_config(options.config, options.assignments);
    if (options.dry_run) return print_plan(plan_run(config, true), options.json);
    if (app.count("--verify-resume") > 0) {
      unequal = !verify(plan_run(config), options, argc, argv);
    } else if (config.train.objective == TrainObjective::kDistillation) {
      stopped = distil(config, options);
    } else {
      const RunPlan plan = plan_run(config);
      stopped =
          with_ranks(plan.config, plan.train->info().data_hash, options,
                     [&](at::Device device, Ranks& ranks) { return train_on(plan, device, ranks, options); });
    }
  });
  if (code != 0) return code;
  return unequal ? 3 : stopped ? kStoppedAfterSaving : 0;
}

}  // namespace elf::app
