// What a safetensors file holds, without reading its data.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace elf {

struct TensorShape {
  at::ScalarType dtype = at::ScalarType::Float;
  std::vector<int64_t> sizes;
};

// By name, with all checks of read_safetensors; `metadata` receives the header's texts. Throws Error (usage).
std::map<std::string, TensorShape> read_safetensors_shapes(const std::filesystem::path& path,
                                                           std::map<std::string, std::string>& metadata);

}  // namespace elf
