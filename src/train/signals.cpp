#include "elf/train/signals.h"

#include <string.h>  // sigabbrev_np
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "elf/base/error.h"

namespace elf {
namespace {

constexpr int64_t kSameMomentMs = 300;

volatile std::sig_atomic_t caught = 0;
volatile int64_t first_int_ms = 0;
int watches = 0;  // alive

int64_t milliseconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void note(int signal) {
  if (signal == SIGINT) {
    if (first_int_ms == 0) {
      first_int_ms = milliseconds_now();
    } else if (milliseconds_now() - first_int_ms > kSameMomentMs) {
      ::_exit(130);
    }
  }
  if (caught == 0) caught = signal;
}

}  // namespace

std::vector<int> signal_numbers(const std::string& names) {
  std::vector<int> numbers;
  std::istringstream words(names);
  for (std::string word; words >> word;) {
    const std::string name = word.starts_with("SIG") ? word.substr(3) : word;
    int number = 0;
    for (int candidate = 1; candidate < NSIG; ++candidate) {
      const char* known = ::sigabbrev_np(candidate);
      if (known != nullptr && name == known) number = candidate;
    }
    constexpr int kAllowed[] = {SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGQUIT, SIGALRM};
    if (std::find(std::begin(kAllowed), std::end(kAllowed), number) == std::end(kAllowed)) {
      usage_error("train.stop_signals: found '", word,
                  "', expected names among HUP, TERM, USR1, USR2, XCPU, QUIT, ALRM");
    }
    numbers.push_back(number);
  }
  return numbers;
}

SignalWatch::SignalWatch(const std::string& names) {
  std::vector<int> numbers = signal_numbers(names);
  numbers.push_back(SIGINT);
  if (watches++ == 0) {
    caught = 0;
    first_int_ms = 0;
  }
  for (const int number : numbers) {
    struct sigaction action {
    }, old{};
    action.sa_handler = note;
    action.sa_flags = SA_RESTART;
    ::sigaction(number, &action, &old);
    before_.emplace_back(number, old);
  }
}

SignalWatch::~SignalWatch() {
  --watches;
  for (const auto& [number, old] : before_) ::sigaction(number, &old, nullptr);
}

bool SignalWatch::stop_requested() const {
  return caught != 0;
}

std::string SignalWatch::name() const {
  const char* known = caught == 0 ? nullptr : ::sigabbrev_np(caught);
  return known == nullptr ? "a signal" : cat("SIG", known);
}

}  // namespace elf
