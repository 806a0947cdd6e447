#include "target.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "elf/base/error.h"

namespace elf::fuzz {

std::string_view fault_of(const Target& target, std::string_view bytes) {
  static std::string fault;
  fault.clear();
  try {
    target.read(bytes);
  } catch (const Error& error) {
    if (error.exit_code() != 2) fault = cat("an error of exit code ", error.exit_code(), ": ", error.what());
  } catch (const std::exception& error) {
    fault = cat("no Error: ", error.what());
  }
  return fault;
}

void broken_promise(const char* what) {
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

}  // namespace elf::fuzz
