#include "elf/base/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "elf/base/error.h"
#include "terminal_bar.h"

namespace elf {
namespace {

std::string rate_text(double per_second) {
  char text[32];
  std::snprintf(text, sizeof text,
                per_second >= 100 ? "%.0f"
                : per_second >= 1 ? "%.1f"
                                  : "%.2f",
                per_second);
  return text;
}

}  // namespace

std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::max(0.0, seconds)));
  char text[32];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", static_cast<long long>(whole / 3600),
                  static_cast<long long>(whole / 60 % 60), static_cast<long long>(whole % 60));
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld", static_cast<long long>(whole / 60),
                  static_cast<long long>(whole % 60));
  }
  return text;
}

Progress::Progress(std::string title, int64_t total, std::string unit)
    : title_(std::move(title)),
      unit_(std::move(unit)),
      total_(total),
      on_terminal_(::isatty(2) != 0),
      start_(Clock::now()),
      last_drawn_(start_) {}

Progress::~Progress() {
  finish();
}

void Progress::update(int64_t done, const std::string& note) {
  if (start_done_ < 0) start_done_ = std::max<int64_t>(0, done - 1);
  last_done_ = done;
  const auto now = Clock::now();
  const auto pause = on_terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(10000);
  if (now - last_drawn_ < pause) return;
  last_drawn_ = now;
  draw(done, note);
}

void Progress::finish(const std::string& note) {
  if (finished_) return;
  finished_ = true;
  draw(last_done_, note);
  if (on_terminal_) std::fputc('\n', stderr);
  bar_on_screen = false;
}

void Progress::draw(int64_t done, const std::string& note) {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const double rate =
      seconds > 0 ? static_cast<double>(done - std::max<int64_t>(0, start_done_)) / seconds : 0;
  std::string line = title_;
  if (total_ > 0) {
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
    if (on_terminal_) {
      const int filled = static_cast<int>(share * 24);
      line += " [" + std::string(filled, '#') + std::string(24 - filled, '.') + "]";
    }
    line += cat(" ", static_cast<int>(share * 100), "% ", done, "/", total_, " ", unit_);
    if (finished_) {
      line += cat(", ", rate_text(rate), "/s, took ", duration_text(seconds));
    } else if (rate > 0) {
      line += cat(", ", rate_text(rate), "/s, ", duration_text(static_cast<double>(total_ - done) / rate),
                  " left");
    }
  } else {
    line += cat(" ", done, " ", unit_, ", ", rate_text(rate), "/s",
                finished_ ? cat(", took ", duration_text(seconds)) : "");
  }
  if (!note.empty()) line += "  " + note;
  if (on_terminal_) {
    std::fprintf(stderr, "\r%s\033[K", line.c_str());
    bar_on_screen = true;
  } else {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  std::fflush(stderr);
}

}  // namespace elf
