// Signals as a question the training loop asks between steps.
#pragma once

#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace elf {

// Catches INT and the signals of `names` ("TERM USR1", with or without SIG) while it lives; the handlers of
// before come back after that. A second INT, later than the moment in which terminal and launcher both pass
// on the first, ends the process at once (exit code 130). A watch that begins while another one lives shares
// its signal: what came before still counts.
class SignalWatch {
 public:
  explicit SignalWatch(const std::string& names);
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  bool stop_requested() const;
  std::string name() const;  // of the signal that came: "SIGTERM"

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

// The numbers of such names. Throws Error (usage) naming one that cannot be caught or is unknown.
std::vector<int> signal_numbers(const std::string& names);

}  // namespace elf
