// elf-bench ablation: sweeps from their files to trained and scored runs, here or as jobs of Slurm.
#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>
#include <thread>

#include "ablation.h"
#include "bench.h"
#include "child_process.h"
#include "elf/app/tools.h"
#include "elf/base/error.h"
#include "elf/base/file_lock.h"
#include "elf/base/files.h"
#include "elf/base/log.h"

namespace elf::app {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> specs;
  std::string out = "runs/ablations", launcher, emit, slurm;
  SweepOptions sweep;
  EstimateOptions estimate;
  bool dry_run = false, json = false;
};

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_./:=,@%+-") == std::string::npos;
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// A script for each job, and submit.sh, which hands them to sbatch in order.
void emit_slurm(const Sweep& sweep, const Options& o) {
  const fs::path folder = sweep.folder() / "slurm";
  make_folder(folder);
  std::string submit =
      "#!/bin/sh\n# Hands the jobs to Slurm; those that use another's run wait for it.\nset -e\n";
  for (const size_t index : chosen_jobs(sweep, o.sweep.only)) {
    const Job& job = sweep.jobs[index];
    std::string script =
        cat("#!/bin/sh\n#SBATCH --job-name=", sweep.spec.name, ".", job.name,
            "\n#SBATCH --output=", (folder / (job.name + ".out")).string(), "\n#SBATCH --requeue\n");
    for (const std::string& word : words_of(o.slurm)) script += "#SBATCH " + word + "\n";
    script += cat("cd ", quoted(fs::current_path().string()), "\nexec ", quoted(sibling_tool("elf-bench")),
                  " ablation ", quoted(fs::absolute(sweep.spec.file).string()), " --out ",
                  quoted(sweep.out.string()), " --only ", quoted(job.name),
                  o.launcher.empty() ? "" : " --launcher " + quoted(o.launcher), "\n");
    const fs::path file = folder / (job.name + ".sh");
    write_file(file, script);
    std::string after;
    for (const size_t need : job.needs)
      after += (after.empty() ? " --dependency=afterok:" : ":") + cat("$job", need);
    submit += cat("job", index, "=$(sbatch --parsable", after, " ", quoted(file.string()), ")\n");
  }
  write_file(folder / "submit.sh", submit);
  std::cout << (folder / "submit.sh").string() << "\n";
}

// One process prepares at a time: jobs of a cluster share the folder.
void prepare_data(const std::vector<Sweep>& sweeps, const fs::path& out, const CommonOptions& common) {
  std::vector<std::string> recipes;
  for (const Sweep& sweep : sweeps) {
    for (const std::string& recipe : sweep.spec.recipes) {
      if (std::ranges::find(recipes, recipe) == recipes.end()) recipes.push_back(recipe);
    }
  }
  if (recipes.empty()) return;
  make_folder(out);
  const FileLock lock(out / "recipes.lock", FileLock::Wait::kUntilFree);
  for (const std::string& recipe : recipes) {
    log_info("preparing data: " + recipe);
    ChildOptions child;
    child.command = {
        sibling_tool("elf-prepare"),   "recipe", recipe, "--device", common.device_name, "--threads",
        std::to_string(common.threads)};
    child.keep_open = lock.descriptor();
    child.own_group = true;
    if (const int code = ChildProcess(child).wait(); code != 0)
      throw Error(code == 2 ? ErrorKind::kUsage : ErrorKind::kEnvironment,
                  cat(recipe, ": elf-prepare recipe ended with exit code ", code));
  }
}

int run_ablation(Options& o, const CommonOptions& common) {
  o.sweep.launcher = words_of(o.launcher);
  o.sweep.device = common.device_name;
  o.sweep.threads = common.threads;
  if (o.sweep.threads == 0 && o.sweep.jobs > 1)
    o.sweep.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency() / o.sweep.jobs));
  std::vector<Sweep> sweeps;
  for (const std::string& spec : o.specs) sweeps.push_back(plan_sweep(load_ablation_spec(spec), o.out));
  if (o.dry_run) {
    std::cout << (o.json ? plan_as_json(sweeps, o.sweep, o.estimate)
                         : plan_as_text(sweeps, o.sweep, o.estimate));
    return 0;
  }
  for (const Sweep& sweep : sweeps) write_sweep(sweep);
  if (o.emit == "slurm") {
    for (const Sweep& sweep : sweeps) emit_slurm(sweep, o);
    return 0;
  }
  prepare_data(sweeps, o.out, common);
  const SweepOutcome outcome = run_sweeps(sweeps, o.sweep);
  if (outcome.stopped) return kStoppedAfterSaving;
  if (!outcome.failures.empty()) {
    std::string list;
    for (const std::string& failure : outcome.failures) list += "\n  " + failure;
    environment_error(outcome.failures.size(), " arms failed; the same command tries them again:", list);
  }
  log_info(cat("all done; see it: elf-bench report ", o.out, " --out report.html"));
  return 0;
}

}  // namespace

void add_ablation_command(Command& app, BenchCommands& commands) {
  Command* command = app.add_subcommand(
      "ablation", "Trains, samples and scores every arm of a sweep (configs/ablations, docs/REPRODUCE.md)");
  const auto o = std::make_shared<Options>();
  command->add_option("SPEC", o->specs, "Files of sweeps; their jobs are one pool")->required();
  command
      ->add_option("--out", o->out, "Folder of all sweeps and runs; equal arms of any sweep are trained once")
      ->capture_default_str();
  command->add_option("--only", o->sweep.only, "Arm (all its seeds) or job; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--jobs", o->sweep.jobs, "Jobs at a time; the cores are shared among them")
      ->between(int64_t{1}, int64_t{1024})
      ->capture_default_str();
  command->add_option("--devices", o->sweep.devices, "cuda:0,cuda:1,...: of the jobs at a time, in turn")
      ->delimiter(',');
  command->add_option("--launcher", o->launcher,
                      "Words before elf-train: \"torchrun --no-python --nproc_per_node 8\"");
  command->add_option("--retries", o->sweep.retries, "Of a stage that failed for no fault of its input")
      ->between(int64_t{0}, int64_t{1000})
      ->capture_default_str();
  Option* dry_run = command->add_flag("--dry-run", o->dry_run,
                                      "Print the arms, what they cost and what is done; run nothing");
  command->add_flag("--json", o->json, "With --dry-run: one JSON object")->needs(dry_run);
  command
      ->add_flag("--measure", o->estimate.measure,
                 "With --dry-run: time a few steps of the first arm for the estimate")
      ->needs(dry_run);
  command->add_option("--rate", o->estimate.rate, "With --dry-run: FLOP/s of the machine, for the estimate")
      ->positive()
      ->needs(dry_run);
  Option* emit =
      command->add_option("--emit", o->emit, "slurm: write a script for each job and submit.sh; run nothing")
          ->one_of({"slurm"});
  command->add_option("--slurm", o->slurm, "Options for the scripts: \"--gpus=8 --time=2-00:00\"")
      ->needs(emit);
  command->add_flag("--resume", "Go on with what is there; always so");
  with_examples(
      *command,
      "  elf-bench ablation configs/ablations/optimiser.yaml --dry-run\n"
      "  elf-bench ablation configs/ablations/nano/*.yaml --jobs 2\n"
      "  elf-bench ablation configs/ablations/scale.yaml --launcher \"torchrun --no-python --nproc_per_node "
      "8\"\n"
      "  elf-bench ablation configs/ablations/targets.yaml --emit slurm --slurm \"--gpus=8 --time=2-00:00\"");
  commands["ablation"] = [o](const CommonOptions& common) { return run_ablation(*o, common); };
}

}  // namespace elf::app
