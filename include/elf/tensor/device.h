// Devices by name. The CUDA half of LibTorch is loaded only when a CUDA device is asked for.
#pragma once

#include <c10/core/Device.h>

#include <string>

namespace elf {

// "auto" (CUDA when there is a usable one, else the CPU), "cpu", "cuda" or "cuda:N".
// Throws Error (usage) for another name or a device that is not there.
at::Device parse_device(const std::string& name);

// Threads of one operation; 0 = as many as there are cores. Call before the first tensor operation.
void set_threads(int count);

}  // namespace elf
