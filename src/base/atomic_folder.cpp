#include "elf/base/atomic_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "elf/base/error.h"
#include "elf/base/files.h"

namespace elf {
namespace fs = std::filesystem;
namespace {

constexpr const char* kOldMark = ".old";

fs::path beside(const fs::path& path, const std::string& ending) {
  return path.parent_path() / cat(".", path.filename().string(), ".", ::getpid(), ending);
}

// In one step. False: this file system cannot, or whatever else is wrong; plain renames will tell.
bool exchanged(const fs::path& a, const fs::path& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

// The same in three steps: by a third name, which the one at `place` keeps only when all else fails.
std::error_code exchange_by_renames(const fs::path& made, const fs::path& place) {
  const fs::path old = beside(place, kOldMark);
  std::error_code error, back;
  fs::rename(place, old, error);
  if (error) return error;
  fs::rename(made, place, error);
  fs::rename(old, error ? place : made, back);
  if (error && back) {
    environment_error(place.string(), ": cannot be put in place: ", error.message(),
                      "; what was there is now ", old.string(),
                      ", which could not be given its name back: ", back.message());
  }
  return error;
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
  sync_all_to_disk(temporary_);
  put_in_place(temporary_, final_);
  committed_ = true;
}

void put_in_place(const fs::path& made, const fs::path& place) {
  std::error_code error;
  if (!fs::exists(place, error)) {
    fs::rename(made, place, error);
  } else if (!exchanged(made, place)) {
    error = exchange_by_renames(made, place);
  }
  if (error) environment_error(place.string(), ": cannot be put in place: ", error.message());
  sync_to_disk(place.has_parent_path() ? place.parent_path() : fs::path("."));
  fs::remove_all(made, error);  // what was there before; it goes when the new names are on disk
}

bool is_replaced_folder(const fs::path& path) {
  const std::string name = path.filename().string(), mark = kOldMark;
  if (name.size() <= 1 + mark.size() || !name.starts_with('.') || !name.ends_with(mark)) return false;
  const std::string rest = name.substr(1, name.size() - 1 - mark.size());
  const size_t dot = rest.rfind('.');  // before the process id
  if (dot == std::string::npos || dot == 0 || dot + 1 == rest.size()) return false;
  if (rest.find_first_not_of("0123456789", dot + 1) != std::string::npos) return false;
  std::error_code error;
  return fs::exists(path.parent_path() / rest.substr(0, dot), error);
}

}  // namespace elf
