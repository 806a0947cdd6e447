// Parts that are shared libraries of their own, loaded when they are asked for: what needs CUDA or NCCL, so
// that programs that use no GPU start without either.
#pragma once

#include <string>

namespace elf {

struct PluginFunction {
  void* address = nullptr;  // null: `failure` says why
  std::string failure = {};
};

// The function `symbol` of `library` ("libelf_nccl.so"), looked for beside the program, in the lib folder
// next to it and where the loader looks. The library stays loaded.
PluginFunction plugin_function(const std::string& library, const std::string& symbol);

}  // namespace elf
