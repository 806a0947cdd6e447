#include "child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "elf/base/error.h"

namespace elf::app {
namespace {

// Between fork and exec: only what such a process may call.
[[noreturn]] void become(const ChildOptions& options, char* const* argv, int log, pid_t parent) {
  if (options.own_group) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(128 + SIGTERM);  // it died before we asked
  }
  if (log >= 0) {
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
  }
  if (options.keep_open >= 0) ::fcntl(options.keep_open, F_SETFD, 0);
  for (const auto& [name, value] : options.environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::execvp(argv[0], argv);
  const char* reason = ::strerror(errno);
  for (const char* part : {static_cast<const char*>(argv[0]), ": cannot be started: ", reason, "\n"}) {
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  }
  ::_exit(127);
}

}  // namespace

ChildProcess::ChildProcess(const ChildOptions& options) : own_group_(options.own_group) {
  std::vector<char*> argv;
  for (const std::string& word : options.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int log = -1;
  if (!options.log.empty()) {
    log = ::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log < 0) environment_error(options.log.string(), ": cannot be written: ", std::strerror(errno));
  }
  const pid_t self = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(options, argv.data(), log, self);
  const int reason = errno;
  if (log >= 0) ::close(log);
  if (pid_ < 0)
    environment_error(options.command.front(), ": no process can be made: ", std::strerror(reason));
  if (own_group_) ::setpgid(pid_, pid_);  // here too: whoever comes first
}

std::optional<int> ChildProcess::ended(int options) {
  if (code_) return code_;
  int status = 0;
  pid_t got = 0;
  while ((got = ::waitpid(pid_, &status, options)) < 0 && errno == EINTR) {
  }
  if (got == 0) return std::nullopt;
  if (got < 0) {
    code_ = 127;  // waited for by someone else: cannot be, but must not be waited for without end
  } else {
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return code_;
}

std::optional<int> ChildProcess::poll() {
  return ended(WNOHANG);
}

int ChildProcess::wait() {
  return *ended(0);
}

void ChildProcess::signal(int number) const {
  if (!code_) ::kill(own_group_ ? -pid_ : pid_, number);
}

std::string sibling_tool(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").replace_filename(name).string();
}

}  // namespace elf::app
