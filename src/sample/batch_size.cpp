#include "elf/sample/batch_size.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace elf {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

// The first number of a file of the kernel; kUnlimited where there is none ("max").
int64_t number_in(const char* file) {
  std::ifstream in(file);
  int64_t value = 0;
  return in >> value ? value : kUnlimited;
}

int64_t free_on_machine() {
  std::ifstream in("/proc/meminfo");
  for (std::string key, rest; in >> key;) {
    if (key == "MemAvailable:") {
      int64_t kib = 0;
      return in >> kib ? kib * 1024 : kUnlimited;
    }
    std::getline(in, rest);
  }
  return kUnlimited;
}

int64_t free_in_group() {
  const int64_t most = number_in("/sys/fs/cgroup/memory.max"),
                used = number_in("/sys/fs/cgroup/memory.current");
  return most == kUnlimited || used == kUnlimited ? kUnlimited : std::max<int64_t>(1, most - used);
}

// Of the current CUDA device. The runtime is loaded with LibTorch's CUDA half, and its header is not needed.
int64_t free_on_cuda() {
  using MemGetInfo = int (*)(size_t * free, size_t * total);
  const auto get = reinterpret_cast<MemGetInfo>(::dlsym(RTLD_DEFAULT, "cudaMemGetInfo"));
  size_t free = 0, total = 0;
  return get != nullptr && get(&free, &total) == 0 ? static_cast<int64_t>(free) : 0;
}

}  // namespace

int64_t available_memory(at::Device device) {
  if (device.is_cuda()) return free_on_cuda();
  const int64_t bytes = std::min(free_on_machine(), free_in_group());
  return bytes == kUnlimited ? 0 : bytes;
}

int64_t rows_that_fit(const RunConfig& config, int64_t bytes) {
  if (bytes <= 0) return std::numeric_limits<int32_t>::max();
  const ModelConfig& m = config.model;
  const int64_t length = config.data.max_length > 0 ? config.data.max_length : m.max_length;
  const int64_t tokens = length + m.num_prefix_tokens();
  const double inner = static_cast<double>(m.hidden_size) * m.mlp_ratio * 2 / 3;
  // Residual, norm, q, k, v and their rotated copies, or the three inner halves of SwiGLU.
  const double block =
      static_cast<double>(tokens) * (12.0 * static_cast<double>(m.hidden_size) + 3.0 * inner);
  const bool explicit_guidance = m.num_self_cond_cfg_tokens == 0 && config.flow.self_cond_prob > 0;
  const double times = (config.data.max_input_length > 0 ? 2 : 1) * (explicit_guidance ? 2 : 1);
  const double states = 10.0 * static_cast<double>(length * m.latent_dim);
  const double row = 4 * (block * times + states * times);
  return std::max<int64_t>(1, static_cast<int64_t>(0.5 * static_cast<double>(bytes) / row));
}

}  // namespace elf
