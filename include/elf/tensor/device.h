// Devices by name. The CUDA half of LibTorch is loaded only when a CUDA device is asked for.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <string>

namespace elf {

// "auto" (CUDA when there is a usable one, else the CPU), "cpu", "cuda" or "cuda:N".
// Throws Error (usage) for another name or a device that is not there.
at::Device parse_device(const std::string& name);

// The same for one of several processes on this machine: "auto" and "cuda" mean the device with the number
// `local_rank`, which becomes the current device. Throws Error (usage) naming the launcher's variables when
// there are fewer devices.
at::Device device_of_process(const std::string& name, int64_t local_rank);

// Threads of one operation; 0 = as many as there are cores. Call before the first tensor operation.
void set_threads(int count);

// `host` on `device`: itself where it is there already; from the CPU to CUDA by way of pinned memory, in the
// order of the current stream and without waiting for it. An undefined tensor stays undefined.
at::Tensor upload(const at::Tensor& host, at::Device device);

// Waits until the device has done what it was given; nothing on the CPU.
void synchronize(at::Device device);

// Most memory that tensors held at once on a CUDA device, in MiB; 0 on the CPU.
double peak_device_memory_mib(at::Device device);

}  // namespace elf
