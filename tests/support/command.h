// Running the command-line tools from a test.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace elf::test {

struct Outcome {
  int code = 0;     // exit code; 128 + N after signal N
  std::string out;  // stdout
  std::string err;  // stderr
};

inline std::string slurp(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline void spill(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Runs `command` by the shell in `folder`, the tools being on the PATH.
inline Outcome run(const std::filesystem::path& folder, const std::string& command) {
  const std::filesystem::path out = folder / ".stdout", err = folder / ".stderr";
  const std::string line = "cd '" + folder.string() + "' && PATH='" ELF_TOOL_DIR "':$PATH && { " + command +
                           "; } >'" + out.string() + "' 2>'" + err.string() + "' </dev/null";
  const int status = std::system(line.c_str());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, slurp(out), slurp(err)};
}

// Before a command: it is killed when it is about to change a file for the `count`-th time
// (kill_at_write.cpp).
inline std::string killed_at_write(int count) {
  return "ELF_KILL_AT_WRITE=" + std::to_string(count) + " LD_PRELOAD='" ELF_KILL_AT_WRITE_LIBRARY "' ";
}

}  // namespace elf::test
