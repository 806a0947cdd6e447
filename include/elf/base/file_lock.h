// One process at a time: a lock on a file.
#pragma once

#include <filesystem>
#include <string>

namespace elf {

// The lock is the kernel's (flock): it ends when this process and every child that was given its descriptor
// have ended, however they end. The file stays: were it removed, a process that has just opened it would lock
// what no other sees.
class FileLock {
 public:
  enum class Wait { kNo, kUntilFree };

  // Makes the file when it is missing. Throws Error as path_error (base/files.h) when it cannot be
  // opened for writing.
  explicit FileLock(std::filesystem::path file, Wait wait = Wait::kNo);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Whether another process has it. False as well where the file system has no locks: `missing` says why.
  bool held_elsewhere() const { return held_elsewhere_; }
  const std::string& missing() const { return missing_; }

  // Replaces what the file says, for people; the holder's. Throws Error as path_error.
  void write(const std::string& text);
  int descriptor() const { return descriptor_; }

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
  bool held_elsewhere_ = false;
  std::string missing_;
};

}  // namespace elf
