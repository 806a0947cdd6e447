#include "elf/base/atomic_folder.h"

#include <unistd.h>

#include <algorithm>

#include "elf/base/error.h"
#include "elf/base/files.h"

namespace elf {
namespace fs = std::filesystem;
namespace {

fs::path beside(const fs::path& path, const std::string& ending) {
  return path.parent_path() / cat(".", path.filename().string(), ".", ::getpid(), ending);
}

}  // namespace

AtomicFolder::AtomicFolder(fs::path final_path, bool replace) {
  final_ = final_path.has_filename() ? std::move(final_path) : final_path.parent_path();  // "dir/" is "dir"
  if (final_.empty()) usage_error("an output folder is needed, found an empty name");
  std::error_code error;
  const bool there = fs::exists(final_, error);
  if (there && !fs::is_directory(final_, error))
    usage_error(final_.string(), ": is a file, expected a folder or a new name");
  if (there && !fs::is_empty(final_, error) && !replace) {
    usage_error(final_.string(),
                ": exists and holds other files; remove it, give another name or --overwrite");
  }
  temporary_ = beside(final_, ".tmp");
  fs::remove_all(temporary_, error);
  fs::create_directories(temporary_, error);
  if (error) path_error(final_, "cannot be made", error);
}

bool holds_only(const fs::path& folder, const std::vector<std::string>& names) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return false;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (std::find(names.begin(), names.end(), entry.path().filename().string()) == names.end()) return false;
  }
  return !error;
}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  if (!committed_) fs::remove_all(temporary_, ignored);
}

void AtomicFolder::commit() {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(temporary_))
    sync_to_disk(entry.path());
  sync_to_disk(temporary_);
  const fs::path old = beside(final_, ".old");
  std::error_code error;
  if (fs::exists(final_)) fs::rename(final_, old, error);
  if (!error) fs::rename(temporary_, final_, error);
  if (error) environment_error(final_.string(), ": cannot be put in place: ", error.message());
  committed_ = true;
  fs::remove_all(old, error);
  sync_to_disk(final_.has_parent_path() ? final_.parent_path() : fs::path("."));
}

}  // namespace elf
