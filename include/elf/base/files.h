// Files written whole or not at all, and digests that say whether a file is the one that was written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace elf {

// The whole file. Throws Error (usage) naming the path when it is missing or no regular file, (environment)
// when reading fails.
std::string read_file(const std::filesystem::path& path);

// A file that appears under its final name only by commit(): written under a temporary name in the same
// folder, fsynced, renamed, and the folder fsynced. Without commit() the temporary file is removed.
//   AtomicFile file(path);  write to file.temporary();  file.commit();
class AtomicFile {
 public:
  // Throws Error (usage) for an empty name, a folder, a device, or a name in a folder that does not exist.
  explicit AtomicFile(std::filesystem::path final_path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::filesystem::path& temporary() const { return temporary_; }
  void commit();  // throws Error (environment): no space, no permission

 private:
  std::filesystem::path final_, temporary_;
  bool committed_ = false;
};

// `content` under `path`, by AtomicFile. Throws Error (environment).
void write_file(const std::filesystem::path& path, std::string_view content);

// Makes a folder and those above it, unless it is there. Throws Error: as path_error.
void make_folder(const std::filesystem::path& path);

// What cannot be made or written, as an Error: usage where the path itself is at fault (a file stands where a
// folder should be, a folder is missing, the name is too long), environment else (disk full, no permission).
[[noreturn]] void path_error(const std::filesystem::path& path, const std::string& what,
                             const std::error_code& error);

// fsync of a file or folder. Throws Error (environment).
void sync_to_disk(const std::filesystem::path& path);

// The same for a folder and all that is in it; a file is the case of one.
void sync_all_to_disk(const std::filesystem::path& path);

// "xxh128:" and 32 hexadecimal digits (XXH3, 128 bits), of bytes or of a file's content.
std::string digest(std::string_view bytes);
std::string digest_of_file(const std::filesystem::path& path);

// Refuses what is often found in the place of a data file: a Git LFS pointer, an HTML page. Call it with the
// first bytes (256 will do) of a file that is not what it should be; returns what the bytes look like ("a Git
// LFS pointer; fetch the real file with `git lfs pull`"), or "".
std::string what_bytes_look_like(std::string_view first_bytes);

}  // namespace elf
