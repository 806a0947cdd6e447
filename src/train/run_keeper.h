// The part of a run that lies on disk: opening its folder, bringing every rank to the state saved there,
// saving.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "elf/dist/ranks.h"
#include "elf/model/elf_net.h"
#include "elf/optim/ema.h"
#include "elf/optim/optimizer.h"
#include "elf/train/run_folder.h"
#include "elf/train/saver.h"

namespace elf {

// All tensors that training changes.
struct Trained {
  ElfNet& network;
  Ema& ema;
  Optimizer& optimizer;
};

// Only the first rank touches the disk; every function must be called by all.
class RunKeeper {
 public:
  // Opens the folder; throws as RunFolder does.
  RunKeeper(const RunPlan& plan, const ResumeChoice& resume, Ranks& ranks);

  // The checkpoint's tensors into those of all ranks; returns its state.json, null for a fresh run. The
  // folder stays as it is: the caller may still refuse what it says.
  nlohmann::json restore(const Trained& trained);
  // Before anything is saved: the folder becomes that of this run (RunFolder::begin).
  void begin();

  // Saves as the checkpoint of state["step"], in the background when memory allows; then runs train.hook and
  // returns its figures, an empty object without any.
  nlohmann::ordered_json save(const Trained& trained, nlohmann::json state, bool is_best);
  void mark_best(int64_t step);
  // Until all is on disk.
  void finish();

  const std::filesystem::path& folder() const { return folder_->path(); }  // first rank only
  int64_t last_saved() const { return last_saved_; }                       // step; -1: none

 private:
  nlohmann::json read(const std::filesystem::path& checkpoint, const Trained& trained) const;

  const RunPlan& plan_;
  Ranks& ranks_;
  std::unique_ptr<RunFolder> folder_;
  std::unique_ptr<Saver> saver_;
  int64_t last_saved_ = -1;
};

}  // namespace elf
