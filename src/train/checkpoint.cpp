#include "elf/train/checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "elf/base/manifest.h"

namespace elf {
namespace fs = std::filesystem;
using json = nlohmann::json;
namespace {

constexpr const char* kTemporaryMark = ".tmp";

std::string name_of_step(int64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step-%08lld", static_cast<long long>(step));
  return text;
}

// Names of the checkpoints in `folder`, oldest first, whole or not.
std::vector<std::string> checkpoint_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name.starts_with("step-") && !name.ends_with(kTemporaryMark))
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_pointer(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return "";
  std::string name = read_file(path);
  while (!name.empty() && std::isspace(static_cast<unsigned char>(name.back()))) name.pop_back();
  return name;
}

}  // namespace

void save_checkpoint(const fs::path& folder, int64_t step, const Checkpoint& checkpoint) {
  const std::string name = name_of_step(step);
  const fs::path temporary = folder / (name + kTemporaryMark);
  try {
    fs::create_directories(folder);
    fs::remove_all(temporary);
    fs::create_directory(temporary);
    write_safetensors(temporary / "model.safetensors", checkpoint.model);
    write_safetensors(temporary / "ema.safetensors", checkpoint.ema);
    write_safetensors(temporary / "optimizer.safetensors", checkpoint.optimizer);
    write_file(temporary / "state.json", checkpoint.state.dump(2) + "\n");
    write_manifest(temporary,
                   {"model.safetensors", "ema.safetensors", "optimizer.safetensors", "state.json"});
    fs::remove_all(folder / name);  // a broken one of the same step, skipped at resume
    fs::rename(temporary, folder / name);
    sync_to_disk(folder);
    write_file(folder / "latest", name + "\n");
  } catch (const fs::filesystem_error& error) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    environment_error("checkpoint of step ", step, ": ", error.what());
  } catch (const Error& error) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    environment_error("checkpoint of step ", step,
                      " was not written, the one before is untouched: ", error.what());
  }
}

void mark_best(const fs::path& folder, int64_t step) {
  write_file(folder / "best", name_of_step(step) + "\n");
}

void remove_old_checkpoints(const fs::path& folder, int64_t keep_last) {
  const std::vector<std::string> names = checkpoint_names(folder);
  const std::string best = read_pointer(folder / "best");
  for (size_t i = 0; i + static_cast<size_t>(std::max<int64_t>(1, keep_last)) < names.size(); ++i) {
    if (names[i] == best) continue;
    // The manifest goes first: a removal that is cut short leaves a checkpoint that is visibly broken.
    std::error_code ignored;
    fs::remove(folder / names[i] / kManifestName, ignored);
    fs::remove_all(folder / names[i], ignored);
  }
}

std::optional<fs::path> newest_checkpoint(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().ends_with(kTemporaryMark)) fs::remove_all(entry.path(), error);
  }
  std::vector<std::string> names = checkpoint_names(folder);
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    const std::string problem = manifest_problem(folder / *name);
    if (problem.empty()) return folder / *name;
    log_warning(cat("checkpoint ", (folder / *name).string(), " is skipped: ", problem));
  }
  if (!names.empty()) {
    usage_error(folder.string(), ": none of its ", names.size(),
                " checkpoints is whole; move the folder away to start afresh, or restore one");
  }
  return std::nullopt;
}

Checkpoint load_checkpoint(const fs::path& path) {
  if (const std::string problem = manifest_problem(path); !problem.empty()) {
    usage_error("checkpoint ", path.string(), " cannot be used: ", problem);
  }
  Checkpoint checkpoint;
  checkpoint.model = read_safetensors(path / "model.safetensors");
  checkpoint.ema = read_safetensors(path / "ema.safetensors");
  checkpoint.optimizer = read_safetensors(path / "optimizer.safetensors");
  checkpoint.state = json::parse(read_file(path / "state.json"), nullptr, false);
  if (!checkpoint.state.is_object() || !checkpoint.state.contains("step"))
    usage_error((path / "state.json").string(), ": is damaged");
  return checkpoint;
}

}  // namespace elf
