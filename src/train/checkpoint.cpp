#include "elf/train/checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "elf/base/atomic_folder.h"
#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/base/log.h"
#include "elf/base/manifest.h"

namespace elf {
namespace fs = std::filesystem;
using json = nlohmann::json;
namespace {

constexpr const char* kTemporaryMark = ".tmp";
constexpr const char* kAsideMark = ".aside";

std::string name_of_step(int64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "step-%08lld", static_cast<long long>(step));
  return text;
}

int64_t step_of_name(const std::string& name) {
  return std::atoll(name.c_str() + std::string("step-").size());
}

// Names of the checkpoints in `folder`, oldest first, whole or not.
std::vector<std::string> checkpoint_names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name.starts_with("step-") && name.find('.') == std::string::npos)
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

void write_parts(const fs::path& folder, const Checkpoint& checkpoint) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  write_safetensors(folder / "model.safetensors", checkpoint.model);
  write_safetensors(folder / "ema.safetensors", checkpoint.ema);
  write_safetensors(folder / "optimizer.safetensors", checkpoint.optimizer);
  write_file(folder / "state.json", checkpoint.state.dump(2) + "\n");
  write_manifest(folder, {"model.safetensors", "ema.safetensors", "optimizer.safetensors", "state.json"});
}

}  // namespace

void save_checkpoint(const fs::path& folder, int64_t step, const Checkpoint& checkpoint) {
  const std::string name = name_of_step(step);
  const fs::path temporary = folder / (name + kTemporaryMark);
  bool in_place = false;
  const auto fail = [&](const std::exception& error) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    environment_error("checkpoint of step ", step,
                      in_place ? " is written, but `latest` does not name it: "
                               : " was not written, the one before is untouched: ",
                      error.what());
  };
  try {
    write_parts(temporary, checkpoint);
    put_in_place(temporary, folder / name);  // over one of the same step, which may be the only one
    in_place = true;
    write_file(folder / "latest", name + "\n");
  } catch (const fs::filesystem_error& error) {
    fail(error);
  } catch (const Error& error) {
    fail(error);
  }
}

fs::path checkpoint_path(const fs::path& folder, int64_t step) {
  return folder / name_of_step(step);
}

void mark_best(const fs::path& folder, int64_t step) {
  write_file(folder / "best", name_of_step(step) + "\n");
}

void remove_old_checkpoints(const fs::path& folder, int64_t keep_last, int64_t keep_every) {
  const std::vector<std::string> names = checkpoint_names(folder);
  const std::string best = read_pointer(folder / "best");
  for (size_t i = 0; i + static_cast<size_t>(std::max<int64_t>(1, keep_last)) < names.size(); ++i) {
    if (names[i] == best || (keep_every > 0 && step_of_name(names[i]) % keep_every == 0)) continue;
    // The manifest goes first: a removal that is cut short leaves a checkpoint that is visibly broken.
    std::error_code ignored;
    fs::remove(folder / names[i] / kManifestName, ignored);
    fs::remove_all(folder / names[i], ignored);
  }
}

void set_aside_later_checkpoints(const fs::path& folder, const std::string& name) {
  for (const std::string& other : checkpoint_names(folder)) {
    if (other <= name) continue;
    fs::path aside = folder / (other + kAsideMark);
    for (int i = 2; fs::exists(aside); ++i) aside = folder / cat(other, kAsideMark, i);
    fs::rename(folder / other, aside);
    log_warning(cat("checkpoint ", other, " is set aside as ", aside.filename().string()));
  }
  write_file(folder / "latest", name + "\n");
}

void remove_unfinished_checkpoints(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> stale;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().ends_with(kTemporaryMark) || is_replaced_folder(entry.path()))
      stale.push_back(entry.path());
  }
  for (const fs::path& path : stale) fs::remove_all(path, error);
}

std::optional<fs::path> newest_checkpoint(const fs::path& folder) {
  const std::vector<std::string> names = checkpoint_names(folder);
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
  checkpoint.state = parse_json(read_file(path / "state.json"));
  if (!checkpoint.state.is_object() || !checkpoint.state.contains("step"))
    usage_error((path / "state.json").string(), ": is damaged");
  return checkpoint;
}

}  // namespace elf
