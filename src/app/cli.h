// What the command lines of tools that work with tensors share: cli_core.h, and device and threads.
#pragma once

#include <ATen/core/Tensor.h>

#include "cli_core.h"
#include "elf/tensor/device.h"

namespace elf::app {

struct CommonOptions : CoreOptions {
  at::Device device() const { return parse_device(device_name); }
};

// run_core, with the threads set.
int run(Command& app, const CommonOptions& options, int argc, char** argv, const std::function<void()>& body);

}  // namespace elf::app
