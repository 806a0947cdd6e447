// SIGINT and SIGTERM as a question the training loop asks between steps.
#pragma once

namespace elf {

// Catches both signals while it lives; the handlers of before come back after that. A second SIGINT ends the
// process at once (exit code 130).
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  bool stop_requested() const;

 private:
  void (*old_int_)(int);
  void (*old_term_)(int);
};

}  // namespace elf
