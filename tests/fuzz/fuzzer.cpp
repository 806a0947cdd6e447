// libFuzzer's entry. ELF_FUZZ_TARGET names the target; without it the names are printed.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "elf/base/log.h"
#include "target.h"

namespace {

const elf::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  elf::set_log_level(elf::LogLevel::kOff);
  const char* name = std::getenv("ELF_FUZZ_TARGET");
  for (const elf::fuzz::Target& target : elf::fuzz::targets()) {
    if (!name) std::printf("%s\n", target.name);
    if (name && std::string_view(name) == target.name) chosen = &target;
  }
  if (!name) std::exit(0);
  if (!chosen) {
    std::fprintf(stderr, "ELF_FUZZ_TARGET=%s is not among the targets\n", name);
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view fault = elf::fuzz::fault_of(*chosen, {reinterpret_cast<const char*>(data), size});
  if (!fault.empty()) elf::fuzz::broken_promise(fault.data());
  return 0;
}
