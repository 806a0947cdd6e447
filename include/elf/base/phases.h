// Where the time of a step goes: code marks its parts with Phase scopes, which cost next to nothing until a
// PhaseClock listens.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace elf {

// Collects the phases of this thread while it lives; one at a time.
class PhaseClock {
 public:
  // `finish` runs before every reading of the clock: on a GPU it waits for the work in flight. May be empty.
  explicit PhaseClock(std::function<void()> finish = {});
  ~PhaseClock();
  PhaseClock(const PhaseClock&) = delete;
  PhaseClock& operator=(const PhaseClock&) = delete;

  // Seconds by phase since the beginning or the last reset. A phase inside another is not part of it.
  const std::map<std::string, double>& seconds() const { return seconds_; }
  void reset() { seconds_.clear(); }

 private:
  friend class Phase;
  void enter(const char* name);
  void leave();
  void lap();

  std::function<void()> finish_;
  std::vector<const char*> open_;
  std::chrono::steady_clock::time_point last_;
  std::map<std::string, double> seconds_;
};

class Phase {
 public:
  // `name` lives longer than the clock (a literal).
  explicit Phase(const char* name);
  ~Phase();
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  PhaseClock* clock_;
};

// Runs `body` as a phase and returns what it returns.
template <class Body>
auto in_phase(const char* name, Body&& body) {
  const Phase phase(name);
  return body();
}

}  // namespace elf
