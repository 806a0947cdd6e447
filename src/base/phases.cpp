#include "elf/base/phases.h"

#include <utility>

namespace elf {
namespace {

thread_local PhaseClock* listening = nullptr;

}  // namespace

PhaseClock::PhaseClock(std::function<void()> finish) : finish_(std::move(finish)) {
  listening = this;
}

PhaseClock::~PhaseClock() {
  listening = nullptr;
}

// The time since the last reading belongs to the innermost open phase.
void PhaseClock::lap() {
  if (finish_) finish_();
  const auto now = std::chrono::steady_clock::now();
  if (!open_.empty()) seconds_[open_.back()] += std::chrono::duration<double>(now - last_).count();
  last_ = now;
}

void PhaseClock::enter(const char* name) {
  lap();
  open_.push_back(name);
}

void PhaseClock::leave() {
  lap();
  open_.pop_back();
}

Phase::Phase(const char* name) : clock_(listening) {
  if (clock_) clock_->enter(name);
}

Phase::~Phase() {
  if (clock_) clock_->leave();
}

}  // namespace elf
