// The one exception type of the project. Its message is what a user reads: what is wrong, what was found,
// what was expected, what to do.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace elf {

// What kind of failure: decides the exit code of a tool.
enum class ErrorKind {
  kUsage,        // bad input, configuration or usage: exit code 2
  kNumerical,    // non-finite numbers, divergence: exit code 3
  kEnvironment,  // disk full, no permission, lost peer: exit code 1
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }
  int exit_code() const { return kind_ == ErrorKind::kUsage ? 2 : kind_ == ErrorKind::kNumerical ? 3 : 1; }

 private:
  ErrorKind kind_;
};

// The parts one after the other, as operator<< writes them: cat("line ", 3, ": ", text).
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// Throw an Error made of the parts.
template <class... Parts>
[[noreturn]] void usage_error(const Parts&... parts) {
  throw Error(ErrorKind::kUsage, cat(parts...));
}
template <class... Parts>
[[noreturn]] void numerical_error(const Parts&... parts) {
  throw Error(ErrorKind::kNumerical, cat(parts...));
}
template <class... Parts>
[[noreturn]] void environment_error(const Parts&... parts) {
  throw Error(ErrorKind::kEnvironment, cat(parts...));
}

}  // namespace elf
