// Locks between processes: held, inherited, waited for.
#include "elf/base/file_lock.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

TEST(FileLock, OneHolderAtATime) {
  const test::TemporaryFolder folder;
  const auto file = folder / "lock";
  auto first = std::make_unique<FileLock>(file);
  EXPECT_FALSE(first->held_elsewhere());
  first->write("host a pid 1, a long line\n");
  first->write("me\n");
  EXPECT_EQ(read_file(file), "me\n");
  EXPECT_TRUE(FileLock(file).held_elsewhere());
  EXPECT_TRUE(FileLock(file).held_elsewhere()) << "looking must not free it";
  first.reset();
  EXPECT_FALSE(FileLock(file).held_elsewhere());
}

// What a job of a sweep relies on: its tools hold the lock of the sweep that was killed.
TEST(FileLock, ChildrenWithTheDescriptorHoldItToo) {
  const test::TemporaryFolder folder;
  const auto file = folder / "lock";
  int gate[2];
  ASSERT_EQ(::pipe(gate), 0);
  auto lock = std::make_unique<FileLock>(file);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte;
    ::close(gate[1]);
    [[maybe_unused]] const auto ignored = ::read(gate[0], &byte, 1);  // until the parent closes its end
    ::_exit(0);
  }
  ::close(gate[0]);
  lock.reset();
  EXPECT_TRUE(FileLock(file).held_elsewhere());
  ::close(gate[1]);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(FileLock(file).held_elsewhere());
}

TEST(FileLock, WaitsUntilItIsFree) {
  const test::TemporaryFolder folder;
  auto first = std::make_unique<FileLock>(folder / "lock");
  std::atomic<bool> freed = false;
  std::thread other([&] {
    const FileLock second(folder / "lock", FileLock::Wait::kUntilFree);
    EXPECT_TRUE(freed);
    EXPECT_FALSE(second.held_elsewhere());
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  freed = true;
  first.reset();
  other.join();
}

// A disk that is full in the middle of the line, by the limit on the size of a file.
TEST(FileLock, WhyALineWasCutIsSaid) {
  const test::TemporaryFolder folder;
  FileLock lock(folder / "lock");
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  rlimit small = usual;
  small.rlim_cur = 4;
  std::string message;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  try {
    errno = 0;
    lock.write("host a pid 1\n");
  } catch (const Error& error) {
    message = error.what();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &usual), 0);
  EXPECT_EQ(read_file(folder / "lock"), "host");
  EXPECT_EQ(message, (folder / "lock").string() + ": cannot be written: No space left on device");
}

TEST(FileLock, AFolderThatIsNotThereIsSaid) {
  try {
    const FileLock lock("/nowhere/lock");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "/nowhere/lock: cannot be written: No such file or directory");
  }
}

}  // namespace
}  // namespace elf
