#include "signals.h"

#include <unistd.h>

#include <csignal>

namespace elf {
namespace {

volatile std::sig_atomic_t caught = 0;

void note(int signal) {
  if (signal == SIGINT && caught != 0) ::_exit(130);
  caught = signal;
}

}  // namespace

SignalWatch::SignalWatch() {
  caught = 0;
  old_int_ = std::signal(SIGINT, note);
  old_term_ = std::signal(SIGTERM, note);
}

SignalWatch::~SignalWatch() {
  std::signal(SIGINT, old_int_);
  std::signal(SIGTERM, old_term_);
}

bool SignalWatch::stop_requested() const {
  return caught != 0;
}

}  // namespace elf
