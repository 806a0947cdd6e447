#include "elf/tensor/device.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <filesystem>

#include "elf/base/error.h"

namespace elf {
namespace {

// Registers the CUDA half of LibTorch; false where the library or a driver is missing.
bool load_cuda() {
  static const bool loaded = [] {
    if (!std::filesystem::exists("/dev/nvidiactl")) return false;
    return ::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) != nullptr && at::hasCUDA();
  }();
  return loaded;
}

}  // namespace

at::Device parse_device(const std::string& name) {
  if (name == "cpu") return at::kCPU;
  if (name == "auto")
    return load_cuda() && at::detail::getCUDAHooks().deviceCount() > 0 ? at::Device(at::kCUDA, 0)
                                                                       : at::Device(at::kCPU);
  int64_t index = 0;
  if (name.starts_with("cuda:")) {
    try {
      size_t used = 0;
      index = std::stoll(name.substr(5), &used);
      if (used != name.size() - 5 || index < 0) throw std::invalid_argument(name);
    } catch (const std::exception&) {
      usage_error("device '", name, "': expected auto, cpu, cuda or cuda:N");
    }
  } else if (name != "cuda") {
    usage_error("device '", name, "': expected auto, cpu, cuda or cuda:N");
  }
  const int64_t count = load_cuda() ? at::detail::getCUDAHooks().deviceCount() : 0;
  if (index >= count)
    usage_error("device '", name, "': this machine has ", count, " usable CUDA devices; try --device cpu");
  return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
}

at::Device device_of_process(const std::string& name, int64_t local_rank) {
  at::Device device = parse_device(name);
  if (!device.is_cuda()) return device;
  const bool named = name.find(':') != std::string::npos;
  const int64_t count = at::detail::getCUDAHooks().deviceCount();
  if (!named && local_rank >= count) {
    usage_error("this is process ", local_rank, " of its machine (LOCAL_RANK, SLURM_LOCALID, ",
                "OMPI_COMM_WORLD_LOCAL_RANK), but the machine shows ", count,
                " CUDA devices; start at most as many processes as there are devices");
  }
  if (!named) device = {at::kCUDA, static_cast<c10::DeviceIndex>(local_rank)};
  c10::impl::VirtualGuardImpl(at::kCUDA).setDevice(device);
  return device;
}

void set_threads(int count) {
  if (count > 0) at::set_num_threads(count);
}

at::Tensor upload(const at::Tensor& host, at::Device device) {
  if (!host.defined()) return host;
  if (!host.is_cpu() || !device.is_cuda()) return host.to(device);
  // The allocator of pinned memory keeps it until the copy is done.
  return host.pin_memory().to(device, /*non_blocking=*/true);
}

void synchronize(at::Device device) {
  if (device.is_cuda()) at::detail::getCUDAHooks().deviceSynchronize(device.index());
}

double peak_device_memory_mib(at::Device device) {
  if (!device.is_cuda()) return 0;
  const auto statistics = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  constexpr size_t kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return static_cast<double>(statistics.allocated_bytes[kAll].peak) / (1024.0 * 1024.0);
}

}  // namespace elf
