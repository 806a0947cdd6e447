// Progress of long work, on stderr: a bar on a terminal, else a plain line now and then with percentage, rate
// and time left.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace elf {

class Progress {
 public:
  // total = 0: unknown; then counts and rate are shown without percentage. `unit` is what is counted, plural:
  // "lines".
  Progress(std::string title, int64_t total, std::string unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` items so far; `note` stands behind the figures (a loss, say). Cheap: redraws at most ten times a
  // second.
  void update(int64_t done, const std::string& note = "");
  // For work whose length becomes known on the way.
  void set_total(int64_t total) { total_ = total; }
  // Ends the bar with its last state. Called by the destructor when it was not.
  void finish(const std::string& note = "");

 private:
  void draw(int64_t done, const std::string& note);

  using Clock = std::chrono::steady_clock;
  std::string title_, unit_;
  int64_t total_, start_done_ = -1, last_done_ = 0;
  bool on_terminal_, finished_ = false;
  Clock::time_point start_, last_drawn_;
};

// "1:02:03" or "4:05", of seconds.
std::string duration_text(double seconds);

}  // namespace elf
