// A sweep on disk, for elf-bench ablation and report:
//
//   OUT/NAME/sweep.json           what the sweep NAME consists of, and where its parts lie
//   OUT/runs/PRESET-KEY/          a training run; its scores/SCORING/SETTING.json are records of elf-eval run
//   OUT/runs/PRESET-KEY.yaml      its configuration
//   OUT/logs/PRESET-KEY.log       what the tools said
//
// KEY is a digest of all settings that matter to a trained model: arms that are equal, of whatever sweep, are
// one run and are trained once.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "elf/config/ablation_spec.h"
#include "eval_settings.h"

namespace elf::app {

struct JobSetting {
  const SampleArm* arm = nullptr;
  NamedSetting setting;
  std::filesystem::path record;
  bool done() const { return std::filesystem::exists(record); }
};

// What a job costs, as far as it is known without its data.
struct JobCost {
  double parameters = 0, steps = 0, tokens = 0;  // 0: not known
  double step_tokens = 0, step_flops = 0, train_flops = 0, sample_flops = 0;
  std::string unknown;  // why, in words
};

// One run to be trained, and what is sampled from it.
struct Job {
  std::string name;  // "muon", or "muon.seed1" where there are several seeds
  const TrainArm* arm = nullptr;
  uint64_t seed = 0;
  RunConfig config;
  std::string id;  // "elf-b-1f2e3d4c"
  std::filesystem::path run;
  std::vector<size_t> needs;  // jobs whose runs it uses
  std::vector<JobSetting> settings;

  int64_t steps_done() const;  // of the newest checkpoint
  bool trained() const;
  size_t scored() const;  // how many of `settings`
};

struct Sweep {
  AblationSpec spec;
  std::filesystem::path out;
  std::vector<Job> jobs;

  std::filesystem::path folder() const { return out / spec.name; }
  std::filesystem::path config_of(const Job& job) const { return out / "runs" / (job.id + ".yaml"); }
  std::filesystem::path log_of(const Job& job) const { return out / "logs" / (job.id + ".log"); }
};

// `out` is made absolute. Throws Error (usage), as a configuration that uses a run would.
Sweep plan_sweep(AblationSpec spec, const std::filesystem::path& out);

JobCost cost_of(const Job& job, const AblationSpec& spec);

// sweep.json: everything that a report needs beside the records and the runs' metrics.
void write_sweep(const Sweep& sweep);

// FLOP/s of training as the lines of a run's metrics.jsonl have it (their median); nothing without any.
std::optional<double> measured_rate(const Job& job, const JobCost& cost);

// Of a run's newest checkpoint; zeros before the first. Throws Error (usage) for a damaged state.json.
struct RunProgress {
  int64_t steps = 0;
  double seconds = 0;  // of training
};
RunProgress progress_of(const std::filesystem::path& run);

// Seconds as people say them: "45 s", "12 min", "3.2 h", "5.1 days".
std::string long_time(double seconds);

// src/app/ablation_run.cpp
struct SweepOptions {
  std::vector<std::string> only;      // arms or jobs; empty: all
  int64_t jobs = 1;                   // at a time
  int64_t retries = 1;                // of a stage that failed for no fault of its input
  std::vector<std::string> launcher;  // words before elf-train
  std::vector<std::string> devices;   // of the jobs at a time, in turn; empty: `device`
  std::string device = "auto";
  int threads = 0;
};
struct SweepOutcome {
  std::vector<std::string> failures;  // "adamw: training: exit code 3, ..."
  bool stopped = false;               // by a signal
};
// The jobs that `only` names with those they need, in an order in which these come first. Throws Error
// (usage) for a name that is none.
std::vector<size_t> chosen_jobs(const Sweep& sweep, const std::vector<std::string>& only);
// The jobs of all sweeps as one pool.
SweepOutcome run_sweeps(const std::vector<Sweep>& sweeps, const SweepOptions& options);

// The command lines of a job.
std::vector<std::string> train_command(const Sweep& sweep, const Job& job, const SweepOptions& options,
                                       const std::string& device);
std::vector<std::string> score_command(const Sweep& sweep, const Job& job, const SweepOptions& options,
                                       const std::string& device);

// src/app/ablation_estimate.cpp
struct EstimateOptions {
  double rate = 0;       // FLOP/s; 0: as the runs that are there trained
  bool measure = false;  // time a few steps of the first arm
};
std::string plan_as_text(const std::vector<Sweep>& sweeps, const SweepOptions& options,
                         const EstimateOptions& estimate);
std::string plan_as_json(const std::vector<Sweep>& sweeps, const SweepOptions& options,
                         const EstimateOptions& estimate);

}  // namespace elf::app
