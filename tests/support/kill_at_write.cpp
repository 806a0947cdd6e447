// Preloaded into a program (LD_PRELOAD), ends it by SIGKILL at the moment it is about to change a file for
// the ELF_KILL_AT_WRITE-th time: what is on the disk is then what a crash at that point leaves. Changes are
// writes to regular files, their lengths, syncs, renames, links and removals; calls that stdio makes inside
// libc are not seen.
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace {

void change() {
  static const long last = [] {
    const char* text = std::getenv("ELF_KILL_AT_WRITE");
    return text == nullptr ? 0L : std::atol(text);
  }();
  static std::atomic<long> changes{0};
  if (++changes == last) ::kill(::getpid(), SIGKILL);
}

void change_of(int file) {
  struct stat status {};
  if (::syscall(SYS_fstat, file, &status) == 0 && S_ISREG(status.st_mode)) change();
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, size_t count) {
  change_of(file);
  return ::syscall(SYS_write, file, bytes, count);
}
ssize_t writev(int file, const iovec* parts, int count) {
  change_of(file);
  return ::syscall(SYS_writev, file, parts, count);
}
ssize_t pwrite(int file, const void* bytes, size_t count, off_t at) {
  change_of(file);
  return ::syscall(SYS_pwrite64, file, bytes, count, at);
}
ssize_t pwrite64(int file, const void* bytes, size_t count, off64_t at) {
  return pwrite(file, bytes, count, at);
}
int ftruncate(int file, off_t length) {
  change_of(file);
  return static_cast<int>(::syscall(SYS_ftruncate, file, length));
}
int ftruncate64(int file, off64_t length) {
  return ftruncate(file, length);
}
int fsync(int file) {
  change_of(file);
  return static_cast<int>(::syscall(SYS_fsync, file));
}
int fdatasync(int file) {
  change_of(file);
  return static_cast<int>(::syscall(SYS_fdatasync, file));
}
int rename(const char* from, const char* to) {
  change();
  return static_cast<int>(::syscall(SYS_rename, from, to));
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  change();
  return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}
int link(const char* from, const char* to) {
  change();
  return static_cast<int>(::syscall(SYS_link, from, to));
}
int unlink(const char* path) {
  change();
  return static_cast<int>(::syscall(SYS_unlink, path));
}

}  // extern "C"
