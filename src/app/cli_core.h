// What every tool's command line shares, torch-free: common options, --version, errors to exit codes. Tools
// that work with tensors include cli.h instead.
#pragma once

#include <functional>
#include <string>

#include "command_line.h"

namespace elf::app {

struct CoreOptions {
  std::string log_level = "info";
  std::string device_name = "auto";
  int threads = 0;
};

// --log-level, --device, --threads and --version; help texts are shown with the defaults.
void add_common_options(Command& app, CoreOptions& options);

// A program with examples at the foot of its --help.
Command& with_examples(Command& app, const std::string& examples);

// Parses the arguments and, when they are good, sets the log level and runs `body`. Prints one message for an
// exception. Returns the exit code.
int run_core(Command& app, const CoreOptions& options, int argc, char** argv,
             const std::function<void()>& body);

}  // namespace elf::app
