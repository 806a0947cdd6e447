// The run folder as the first rank owns it: one trainer at a time, one run for ever.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "elf/base/file_lock.h"
#include "elf/train/run_plan.h"

namespace elf {

// What --resume says: "auto", "never", or the path of a checkpoint or run.
struct ResumeChoice {
  std::string text = "auto";
  bool never() const { return text == "never"; }
  bool names_a_path() const { return text != "auto" && text != "never"; }
};

class RunFolder {
 public:
  // Makes config.train.out, locks it (DIR/lock: host and process id, freed when the process ends, however it
  // ends), finds the checkpoint to go on from and compares the run's configuration with the present one. The
  // run that is there stays as it is until begin().
  // Throws Error (usage): the folder cannot be made; another trainer works there; it holds another run, or
  // any with resume "never"; none of its checkpoints is whole; the path to resume from is no checkpoint.
  RunFolder(const RunPlan& plan, const ResumeChoice& resume);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // Makes the run that of `config`, the one of the plan, once nothing can be refused any more: starts
  // DIR/log.txt, sets later checkpoints aside and removes unfinished ones. A fresh run gets its own copies of
  // tokenizer and encoder, and config.yaml; one that goes on gets its changed settings.
  void begin(const RunConfig& config) const;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  // Where to go on from; nothing: a fresh run.
  const std::optional<std::filesystem::path>& checkpoint() const { return checkpoint_; }

 private:
  explicit RunFolder(const std::string& path);  // made and locked
  void lock();
  void find_checkpoint(const ResumeChoice& resume);
  void refuse_another_model(ModelConfig before, const ModelConfig& now) const;
  void store_settings(const RunConfig& before, const RunConfig& now) const;

  std::filesystem::path path_;
  std::optional<std::filesystem::path> checkpoint_;
  bool goes_back_ = false;           // to an own checkpoint that was named: later ones are in the way
  std::optional<RunConfig> before_;  // of the run that the folder held
  std::unique_ptr<FileLock> lock_;
};

// Keys whose values differ and that matter for the result, as "optimizer.lr 0.001 -> 0.002". Paths, lengths
// of the run, logging and saving do not.
std::vector<std::string> changed_settings(const RunConfig& before, const RunConfig& now);

}  // namespace elf
