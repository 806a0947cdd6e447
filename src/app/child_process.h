// Another program, started from this one: usually a tool of the same folder.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace elf::app {

struct ChildOptions {
  std::vector<std::string> command;  // command[0]: a path, or a name to be found in PATH
  std::vector<std::pair<std::string, std::string>> environment;  // added to that of this process
  std::filesystem::path log;  // stdout and stderr are appended to it; empty: those of this process
  int keep_open = -1;         // a file descriptor that it inherits: a lock that lives as long as it does
  bool own_group = false;  // signals of the terminal do not reach it; it gets SIGTERM when this process dies
};

class ChildProcess {
 public:
  // Throws Error (environment) when no process can be made. A program that cannot be started ends with 127.
  explicit ChildProcess(const ChildOptions& options);

  // The exit code once it has ended (128 + N after signal N), nothing before.
  std::optional<int> poll();
  int wait();
  void signal(int number) const;  // to it and, with own_group, to what it started

 private:
  std::optional<int> ended(int options);

  pid_t pid_ = -1;
  bool own_group_ = false;
  std::optional<int> code_;
};

// A tool in the folder of the running program: "elf-train".
std::string sibling_tool(const std::string& name);

}  // namespace elf::app
