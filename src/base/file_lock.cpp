#include "elf/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "elf/base/files.h"

namespace elf {

FileLock::FileLock(std::filesystem::path file, Wait wait) : file_(std::move(file)) {
  descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) path_error(file_, "cannot be written", {errno, std::generic_category()});
  const int how = LOCK_EX | (wait == Wait::kNo ? LOCK_NB : 0);
  int failed = 0;
  do failed = ::flock(descriptor_, how);
  while (failed != 0 && errno == EINTR);
  if (failed == 0) return;
  held_elsewhere_ = errno == EWOULDBLOCK;
  if (!held_elsewhere_) missing_ = std::strerror(errno);
}

FileLock::~FileLock() {
  ::close(descriptor_);
}

void FileLock::write(const std::string& text) {
  const auto size = static_cast<ssize_t>(text.size());
  errno = ENOSPC;  // a write that stops short sets none
  if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, text.data(), text.size(), 0) != size)
    path_error(file_, "cannot be written", {errno, std::generic_category()});
}

}  // namespace elf
