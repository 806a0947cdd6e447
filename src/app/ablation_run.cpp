// The jobs of a sweep as child processes: so many at a time, each trained and then scored, whatever becomes
// of the others.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "ablation.h"
#include "child_process.h"
#include "elf/base/error.h"
#include "elf/base/file_lock.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "elf/train/signals.h"

namespace elf::app {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
namespace {

enum class State { kWaiting, kRunning, kDone, kFailed };

// The last lines of a log, from `offset` on, that say something.
std::string last_words(const fs::path& log, uintmax_t offset) {
  std::error_code error;
  if (!fs::exists(log, error)) return "";
  std::string text = read_file(log).substr(std::min<uintmax_t>(offset, fs::file_size(log)));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// A job in the pool of all sweeps.
struct Task {
  const Sweep* sweep;
  const Job* job;
  std::vector<size_t> needs;  // tasks
  std::string name;           // "optimiser/muon" where there are several sweeps
  State state = State::kWaiting;
  bool told = false;  // that it waits for a run at work elsewhere

  fs::path log() const { return sweep->log_of(*job); }
  bool scored() const { return job->scored() == job->settings.size(); }
};

struct Running {
  Task* task;
  bool training;  // else scoring
  int64_t attempt;
  // One sweep works on a run at a time. The job's tools inherit the lock: when this process is killed, it is
  // free when they are gone as well.
  std::unique_ptr<FileLock> lock;
  std::unique_ptr<ChildProcess> child;
  uintmax_t log_begin;
  Clock::time_point start;

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start).count(); }
};

std::vector<Task> tasks_of(const std::vector<Sweep>& sweeps, const std::vector<std::string>& only) {
  std::vector<Task> tasks;
  for (const Sweep& sweep : sweeps) {
    std::map<size_t, size_t> place;  // of a job among the tasks
    for (const size_t index : chosen_jobs(sweep, only)) {
      const Job& job = sweep.jobs[index];
      place[index] = tasks.size();
      Task& task = tasks.emplace_back(Task{&sweep, &job, {}, job.name});
      if (sweeps.size() > 1) task.name = sweep.spec.name + "/" + job.name;
      for (const size_t need : job.needs) task.needs.push_back(place.at(need));
    }
  }
  return tasks;
}

class Runner {
 public:
  Runner(const std::vector<Sweep>& sweeps, const SweepOptions& options)
      : options_(options),
        tasks_(tasks_of(sweeps, options.only)),
        slots_(static_cast<size_t>(options.jobs)) {}

  SweepOutcome run() {
    for (;;) {
      if (signals_.stop_requested()) stop();
      for (auto& slot : slots_) {
        if (slot) look_after(slot);
        if (!slot && !outcome_.stopped) fill(slot);
      }
      const bool idle = std::ranges::none_of(slots_, [](const auto& slot) { return slot != nullptr; });
      const bool waiting = std::ranges::find(tasks_, State::kWaiting, &Task::state) != tasks_.end();
      if (idle && (outcome_.stopped || !waiting)) return outcome_;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

 private:
  void stop() {
    if (outcome_.stopped) return;
    outcome_.stopped = true;
    log_warning(cat(signals_.name(), ": the running jobs are told to save and stop"));
    for (const auto& slot : slots_) {
      if (slot) slot->child->signal(SIGTERM);
    }
  }

  // The first job that can start now.
  void fill(std::unique_ptr<Running>& slot) {
    for (Task& task : tasks_) {
      if (task.state != State::kWaiting || !ready(task)) continue;
      const Job& job = *task.job;
      if (job.trained() && task.scored()) {
        log_info(cat(task.name, ": done before (", job.id, ")"));
        task.state = State::kDone;
        continue;
      }
      auto lock = std::make_unique<FileLock>(task.sweep->out / "runs" / (job.id + ".lock"));
      if (lock->held_elsewhere()) {
        if (!task.told) log_info(cat(task.name, ": waits for ", job.id, ", at work elsewhere"));
        task.told = true;
        continue;
      }
      task.state = State::kRunning;
      slot = std::make_unique<Running>(Running{&task, !job.trained(), 1, std::move(lock), nullptr, 0, {}});
      return start(slot);
    }
  }

  // A job waits for the runs it uses; one of these failed: so has it.
  bool ready(Task& task) {
    for (const size_t index : task.needs) {
      const Task& need = tasks_[index];
      if (need.state == State::kFailed && !need.job->trained()) {
        fail(task, cat("uses the run of ", need.name, ", which failed"));
        return false;
      }
      if (!need.job->trained()) return false;
    }
    return true;
  }

  void fail(Task& task, const std::string& why) {
    task.state = State::kFailed;
    outcome_.failures.push_back(task.name + ": " + why);
    log_error(outcome_.failures.back());
  }

  std::string device_of(const std::unique_ptr<Running>& slot) const {
    if (options_.devices.empty()) return options_.device;
    return options_.devices[static_cast<size_t>(&slot - slots_.data()) % options_.devices.size()];
  }

  // Starts the stage that the slot's job is at.
  void start(std::unique_ptr<Running>& slot) {
    const Task& task = *slot->task;
    const Job& job = *task.job;
    ChildOptions child;
    if (slot->training) {
      write_file(task.sweep->config_of(job), to_yaml(job.config));
      child.command = train_command(*task.sweep, job, options_, device_of(slot));
    } else {
      child.command = score_command(*task.sweep, job, options_, device_of(slot));
    }
    child.log = task.log();
    child.keep_open = slot->lock->descriptor();
    child.own_group = true;
    std::error_code error;
    slot->log_begin = fs::exists(child.log, error) ? fs::file_size(child.log) : 0;
    slot->start = Clock::now();
    const int64_t done = job.steps_done();
    log_info(cat(task.name, ": ",
                 slot->training
                     ? cat("training ", job.id, done > 0 ? cat(", on from step ", done) : "")
                     : cat("sampling and scoring, ", job.settings.size() - job.scored(), " settings"),
                 slot->attempt > 1 ? cat(", attempt ", slot->attempt) : ""));
    slot->child = std::make_unique<ChildProcess>(child);
  }

  void look_after(std::unique_ptr<Running>& slot) {
    const std::optional<int> code = slot->child->poll();
    if (!code) return;
    Task& task = *slot->task;
    if (*code == 0 && (slot->training || task.scored())) return finish_stage(slot);
    if (outcome_.stopped) {  // the next start goes on with it
      task.state = State::kWaiting;
      return slot.reset();
    }
    std::string why = cat(slot->training ? "training" : "scoring", ": exit code ", *code);
    if (const std::string words = last_words(task.log(), slot->log_begin); !words.empty())
      why += ", " + words;
    // Bad input, bad numbers and a missing program are what they are; anything else may have been the
    // machine.
    const bool hopeless = *code == 2 || *code == 3 || *code == 127;
    if (!hopeless && slot->attempt <= options_.retries) {
      log_warning(cat(task.name, ": ", why, "; tried again"));
      ++slot->attempt;
      return start(slot);
    }
    fail(task, cat(why, " (", task.log().string(), ")"));
    slot.reset();
  }

  void finish_stage(std::unique_ptr<Running>& slot) {
    Task& task = *slot->task;
    const char* what = slot->training ? ": trained in " : ": scored in ";
    log_info(cat(task.name, what, long_time(slot->seconds())));
    if (slot->training) write_file(task.job->run / "trained", "");
    slot->training = false;
    slot->attempt = 1;
    if (!task.scored() && !outcome_.stopped) return start(slot);
    task.state = task.scored() ? State::kDone : State::kWaiting;
    slot.reset();
  }

  const SweepOptions& options_;
  const SignalWatch signals_{"TERM"};
  std::vector<Task> tasks_;
  std::vector<std::unique_ptr<Running>> slots_;
  SweepOutcome outcome_;
};

void add_common(std::vector<std::string>& command, const SweepOptions& options, const std::string& device) {
  command.insert(command.end(), {"--device", device, "--threads", std::to_string(options.threads)});
}

}  // namespace

std::vector<size_t> chosen_jobs(const Sweep& sweep, const std::vector<std::string>& only) {
  std::vector<bool> chosen(sweep.jobs.size(), only.empty());
  for (const std::string& name : only) {
    bool known = false;
    for (size_t i = 0; i < sweep.jobs.size(); ++i) {
      if (sweep.jobs[i].name != name && sweep.jobs[i].arm->name != name) continue;
      chosen[i] = known = true;
    }
    if (known) continue;
    std::string names;
    for (const TrainArm& arm : sweep.spec.train) names += (names.empty() ? "" : ", ") + arm.name;
    usage_error("--only ", name, ": no such arm in ", sweep.spec.file.string(), "; its arms are ", names);
  }
  // What a job needs stands before it.
  for (size_t i = sweep.jobs.size(); i-- > 0;) {
    if (!chosen[i]) continue;
    for (const size_t need : sweep.jobs[i].needs) chosen[need] = true;
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i]) order.push_back(i);
  }
  return order;
}

std::vector<std::string> train_command(const Sweep& sweep, const Job& job, const SweepOptions& options,
                                       const std::string& device) {
  std::vector<std::string> command = options.launcher;
  command.insert(command.end(), {sibling_tool("elf-train"), "--config", sweep.config_of(job).string(),
                                 "--out", job.run.string(), "--resume", "auto"});
  add_common(command, options, device);
  return command;
}

std::vector<std::string> score_command(const Sweep& sweep, const Job& job, const SweepOptions& options,
                                       const std::string& device) {
  const ScoreSpec& score = sweep.spec.score;
  std::vector<std::string> command = {
      sibling_tool("elf-eval"), "run",           "--model",
      job.run.string(),         "--num-samples", std::to_string(score.samples)};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) command.insert(command.end(), {option, value});
  };
  std::string seeds, metrics;
  for (const uint64_t seed : score.seeds) seeds += cat(seeds.empty() ? "" : ",", seed);
  for (const std::string& metric : score.metrics) metrics += (metrics.empty() ? "" : ",") + metric;
  add("--seeds", seeds);
  add("--scorer", score.by == ScorerKind::kGpt2 ? score.scorer : "");
  add("--train", score.text);
  add("--ngram-order", score.by == ScorerKind::kNgram ? std::to_string(score.order) : "");
  add("--data", score.data);
  add("--metrics", metrics);
  std::set<std::string> names;  // two curves may cross: their common setting is sampled once
  for (const JobSetting& one : job.settings) {
    if (!one.done() && names.insert(one.setting.name).second)
      add("--setting", setting_text(one.setting.config));
  }
  if (score.clean_up) command.emplace_back("--clean-up");
  add("--out", job.settings.empty() ? "" : job.settings.front().record.parent_path().string());
  add_common(command, options, device);
  return command;
}

SweepOutcome run_sweeps(const std::vector<Sweep>& sweeps, const SweepOptions& options) {
  for (const Sweep& sweep : sweeps) {
    for (const char* folder : {"runs", "logs"}) make_folder(sweep.out / folder);
  }
  return Runner(sweeps, options).run();
}

}  // namespace elf::app
