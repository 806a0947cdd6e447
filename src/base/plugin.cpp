#include "elf/base/plugin.h"

#include <dlfcn.h>

#include <filesystem>

namespace elf {
namespace {

std::string last_failure() {
  const char* text = ::dlerror();
  return text == nullptr ? "" : text;
}

}  // namespace

PluginFunction plugin_function(const std::string& library, const std::string& symbol) {
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::filesystem::path file = library;
  for (const auto& path : {folder / library, folder / "../lib" / library}) {
    if (!std::filesystem::exists(path)) continue;
    file = path;
    break;
  }
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) return {nullptr, last_failure()};
  void* address = ::dlsym(handle, symbol.c_str());
  return address == nullptr ? PluginFunction{nullptr, last_failure()} : PluginFunction{address};
}

}  // namespace elf
