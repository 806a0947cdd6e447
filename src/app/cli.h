// What every tool's command line shares: common options, --version, errors to exit codes.
#pragma once

#include <ATen/core/Tensor.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "elf/tensor/device.h"

namespace elf::app {

struct CommonOptions {
  std::string log_level = "info";
  std::string device_name = "auto";
  int threads = 0;

  at::Device device() const { return parse_device(device_name); }
};

// --log-level, --device, --threads and --version; help texts are shown with the defaults.
void add_common_options(CLI::App& app, CommonOptions& options);

// Parses the arguments and, when they are good, sets log level and threads and runs `body`. Prints one message for an Error.
int run(CLI::App& app, const CommonOptions& options, int argc, char** argv, const std::function<void()>& body);

// A program with examples at the foot of its --help.
CLI::App& with_examples(CLI::App& app, const std::string& examples);

}  // namespace elf::app
