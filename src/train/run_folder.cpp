#include "elf/train/run_folder.h"

#include <unistd.h>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "elf/model/model_dir.h"
#include "elf/train/checkpoint.h"

namespace elf {
namespace fs = std::filesystem;
namespace {

// Settings of `train:` that change the result; all of `flow:`, `optimizer:` and, of a student,
// `distillation:` do.
constexpr const char* kTrainKeys[] = {"train.objective", "train.seed", "train.global_batch_size",
                                      "train.precision", "train.tf32"};

bool matters(const std::string& key) {
  if (key.starts_with("flow.") || key.starts_with("optimizer.") || key == "model.dropout") return true;
  if (key.starts_with("distillation.")) return !key.starts_with("distillation.eval_");
  for (const char* name : kTrainKeys) {
    if (key == name) return true;
  }
  return false;
}

std::string holder_of(const fs::path& file) {
  std::error_code error;
  std::string text = fs::exists(file, error) ? read_file(file) : "";
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "unknown" : text;
}

std::string this_process() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  return cat("host ", host, " pid ", ::getpid());
}

// A checkpoint folder from the path of one, or of a run.
fs::path checkpoint_at(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) usage_error("--resume ", path.string(), ": no such checkpoint or run");
  if (fs::exists(path / "checkpoints", error)) {
    const auto newest = newest_checkpoint(path / "checkpoints");
    if (!newest) usage_error("--resume ", path.string(), ": the run has no checkpoint");
    return *newest;
  }
  if (!fs::exists(path / "state.json", error)) {
    std::string candidates;
    for (const auto& entry : fs::directory_iterator(path, error)) {
      if (entry.path().filename().string().starts_with("step-"))
        candidates += " " + entry.path().filename().string();
    }
    usage_error("--resume ", path.string(), ": is neither a checkpoint nor a run",
                candidates.empty() ? "" : "; name one of those in it:" + candidates);
  }
  return fs::absolute(path).lexically_normal();
}

void warn_of_changes(const RunConfig& before, const RunConfig& now) {
  std::string text;
  for (const std::string& change : changed_settings(before, now)) text += "\n  " + change;
  if (text.empty()) return;
  log_warning(
      cat("the run goes on with other settings than it had; it will not equal one that had them from "
          "the start:",
          text));
}

}  // namespace

std::vector<std::string> changed_settings(const RunConfig& before, const RunConfig& now) {
  std::vector<std::string> changes;
  const auto old_fields = flat_fields(before), new_fields = flat_fields(now);
  for (size_t i = 0; i < new_fields.size(); ++i) {
    const auto& [key, value] = new_fields[i];
    if (matters(key) && old_fields[i].second != value)
      changes.push_back(cat(key, " ", old_fields[i].second, " -> ", value));
  }
  return changes;
}

namespace {

// Before anything is written: a run has checkpoints/ from its first moment.
void refuse_other_folders(const fs::path& path) {
  std::error_code error;
  if (fs::exists(path / "checkpoints", error)) return;
  for (const char* part : {"model.json", "spiece.model", "table.safetensors", "config.json"}) {
    if (fs::exists(path / part, error))
      usage_error(path.string(), ": holds ", part,
                  ", so it is a model, tokenizer, table or encoder and no run; name another folder");
  }
}

}  // namespace

RunFolder::RunFolder(const std::string& path) : path_(path) {
  refuse_other_folders(path_);
  std::error_code error;
  fs::create_directories(checkpoints(), error);
  if (error) usage_error(path_.string(), ": the run folder cannot be made: ", error.message());
  lock();
}

// What is refused here unlocks the folder: by the destructor, the other constructor having ended.
RunFolder::RunFolder(const RunPlan& plan, const ResumeChoice& resume) : RunFolder(plan.config.train.out) {
  find_checkpoint(resume);
  if (!fs::exists(path_ / "config.yaml")) return;
  before_ = load_run_config(path_ / "config.yaml");
  refuse_another_model(before_->model, plan.config.model);
}

void RunFolder::begin(const RunConfig& config) const {
  log_to_file(path_ / "log.txt");
  remove_unfinished_checkpoints(checkpoints());
  if (goes_back_) set_aside_later_checkpoints(checkpoints(), checkpoint_->filename().string());
  if (before_ && checkpoint_) {
    warn_of_changes(*before_, config);
    store_settings(*before_, config);
  } else {
    write_model_parts(path_, config);
  }
}

RunFolder::~RunFolder() {
  try {
    if (lock_) lock_->write("");
  } catch (const Error& error) {
    log_warning(error.what());
  }
}

void RunFolder::lock() {
  const fs::path file = path_ / "lock";
  auto lock = std::make_unique<FileLock>(file);
  if (lock->held_elsewhere()) {
    usage_error(path_.string(), ": another trainer works here (", holder_of(file),
                "); wait for it, end it, or give another --out");
  }
  if (!lock->missing().empty()) {
    log_warning(cat(file.string(), ": this file system has no locks (", lock->missing(),
                    "); see to it that no other trainer works here"));
    return;
  }
  lock->write(this_process() + "\n");
  lock_ = std::move(lock);
}

void RunFolder::find_checkpoint(const ResumeChoice& resume) {
  checkpoint_ = newest_checkpoint(checkpoints());
  if (checkpoint_ && resume.never()) {
    usage_error(path_.string(), ": holds a run already (", checkpoint_->filename().string(),
                "); give another --out, or --resume auto to go on");
  }
  if (!resume.names_a_path()) return;
  const fs::path named = checkpoint_at(resume.text);
  std::error_code error;
  goes_back_ = fs::equivalent(named.parent_path(), checkpoints(), error);
  if (checkpoint_ && !goes_back_) {
    usage_error(path_.string(), ": holds a run already (", checkpoint_->filename().string(),
                "); to go on from ", named.string(), " give another --out");
  }
  checkpoint_ = named;
}

void RunFolder::refuse_another_model(ModelConfig before, const ModelConfig& now) const {
  before.dropout = now.dropout;  // may change on the way
  if (before == now) return;
  usage_error(path_.string(),
              ": holds a run with another `model:` section (see its config.yaml); give another --out");
}

// config.yaml says what is in force now; data and latents stay those of the run's own copies.
void RunFolder::store_settings(const RunConfig& before, const RunConfig& now) const {
  RunConfig stored = before;
  stored.model = now.model;
  stored.flow = now.flow;
  stored.optimizer = now.optimizer;
  stored.train = now.train;
  stored.distillation = now.distillation;
  stored.sampling = now.sampling;
  if (stored == before) return;
  stored.data.train = now.data.train;
  stored.data.valid = now.data.valid;
  // Paths read from the file have become relative to the working directory: name the copies again.
  const auto own_name = [&](std::string& path) {
    const fs::path name = fs::path(path).filename();
    std::error_code error;
    if (!path.empty() && fs::exists(path_ / name, error) && fs::equivalent(path, path_ / name, error))
      path = name.string();
  };
  own_name(stored.data.tokenizer);
  own_name(stored.latents.path);
  own_name(stored.latents.statistics);
  own_name(stored.latents.decoder);
  write_file(path_ / "config.yaml", to_yaml(stored));
}

}  // namespace elf
