// Saving while training goes on: a copy of the state in memory, written by a thread.
#pragma once

#include <future>

#include "elf/train/checkpoint.h"

namespace elf {

struct SavePolicy {
  int64_t keep_last = 2;   // checkpoints kept beside the best
  int64_t keep_every = 0;  // > 0: those of steps that this divides stay too
  bool background = true;  // where there is memory for a copy
};

class Saver {
 public:
  Saver(std::filesystem::path folder, const SavePolicy& policy);
  ~Saver();  // waits; an error of the last save is logged
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  // Whether so many bytes are to be saved in the background. The answer changes with the memory that is free:
  // ask once.
  bool in_background(int64_t bytes) const;
  // Whether a save is still going on, for which the next one would wait.
  bool busy() const;

  // Writes `checkpoint` as that of `step`, points `latest` at it, `best` too with `is_best`, then removes old
  // ones; without `background` it returns when all is on disk. The tensors may change as soon as it returns.
  // Waits for the save before, and throws its error.
  void save(int64_t step, const Checkpoint& checkpoint, bool is_best, bool background);

  // Until everything is on disk. Throws the error of a save in the background.
  void wait();

 private:
  void write(int64_t step, const Checkpoint& checkpoint, bool is_best) const;

  std::filesystem::path folder_;
  SavePolicy policy_;
  std::future<void> writing_;
};

// Bytes of all tensors.
int64_t size_of(const Checkpoint& checkpoint);

}  // namespace elf
