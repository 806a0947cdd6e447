// Checkpoints: DIR/step-00001000/{model,ema,optimizer}.safetensors, state.json, manifest.json. A checkpoint
// appears whole or not at all: it is written under a temporary name, its manifest last, then renamed; the
// pointers `latest` and `best` move after that.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "elf/tensor/safetensors.h"

namespace elf {

struct Checkpoint {
  TensorMap model;       // raw weights, by parameter name
  TensorMap ema;         // their averages
  TensorMap optimizer;   // "<name>:momentum_buffer", ...
  nlohmann::json state;  // at least "step"; see train/trainer.h
};

// Writes `checkpoint` as step `step` into `folder` and points `latest` at it. Throws Error (environment); the
// checkpoints before stay good.
void save_checkpoint(const std::filesystem::path& folder, int64_t step, const Checkpoint& checkpoint);

// Where the checkpoint of `step` lies, or would.
std::filesystem::path checkpoint_path(const std::filesystem::path& folder, int64_t step);

// Points `best` at the checkpoint of `step`.
void mark_best(const std::filesystem::path& folder, int64_t step);

// Removes all but the `keep_last` newest checkpoints, those of steps that `keep_every` divides (0: none) and
// the one `best` names.
void remove_old_checkpoints(const std::filesystem::path& folder, int64_t keep_last, int64_t keep_every = 0);

// Renames the checkpoints after `name` to NAME.aside, where nothing looks for them, and points `latest` at
// `name`: for going on from an earlier one without losing those.
void set_aside_later_checkpoints(const std::filesystem::path& folder, const std::string& name);

// Removes what saves that were cut short have left. Only for whom the run is locked: in another's, such a
// folder is the checkpoint that is being written.
void remove_unfinished_checkpoints(const std::filesystem::path& folder);

// The newest whole checkpoint; each broken one is skipped with a log line that says why. Nothing when the
// folder holds no checkpoint; throws Error (usage) when it holds some and none is whole. Changes nothing.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& folder);

// Reads and verifies one checkpoint. Throws Error (usage) saying what is wrong.
Checkpoint load_checkpoint(const std::filesystem::path& path);

}  // namespace elf
