// Calls of the C library that a test watches, or lets fail as a disk or a file system would. The functions
// here take the place of the library's in the whole program, so one source file of it includes this.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <string>

namespace elf::test {

// Asked before each call, with the path in question (of a rename the new name): 0 lets it happen, another
// number is the errno it fails with. Set by WhileCallsAsk.
inline std::function<int(const std::string& call, const std::string& path)> asked_on_call;

class WhileCallsAsk {
 public:
  explicit WhileCallsAsk(std::function<int(const std::string& call, const std::string& path)> ask) {
    asked_on_call = std::move(ask);
  }
  ~WhileCallsAsk() { asked_on_call = nullptr; }
  WhileCallsAsk(const WhileCallsAsk&) = delete;
  WhileCallsAsk& operator=(const WhileCallsAsk&) = delete;
};

inline std::string path_of_descriptor(int file) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file), error).string();
}

// True: the call is to fail, and errno says how.
inline bool fails(const char* call, const std::string& path) {
  const int code = asked_on_call(call, path);
  if (code != 0) errno = code;
  return code != 0;
}

}  // namespace elf::test

extern "C" {

int rename(const char* from, const char* to) noexcept {
  if (elf::test::asked_on_call && elf::test::fails("rename", to)) return -1;
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  if (elf::test::asked_on_call && elf::test::fails("renameat2", to)) return -1;
  return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

int fsync(int file) {
  if (elf::test::asked_on_call && elf::test::fails("fsync", elf::test::path_of_descriptor(file))) return -1;
  return static_cast<int>(::syscall(SYS_fsync, file));
}

int fclose(FILE* file) {
  using Function = int (*)(FILE*);
  static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "fclose"));
  const bool failed =
      elf::test::asked_on_call && elf::test::fails("fclose", elf::test::path_of_descriptor(::fileno(file)));
  const int code = errno, status = real(file);  // closed in any case
  if (failed) errno = code;
  return failed ? EOF : status;
}

}  // extern "C"
