#include "watch.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "elf/base/error.h"

namespace elf::app {
namespace {

constexpr size_t kSamplesShown = 8;

// Greys 236 (nearly black) to 255 (white) of the 256-colour palette; green where the model is sure.
int colour_of(double confidence) {
  if (confidence >= 0.9) return 114;
  return 236 + static_cast<int>(std::clamp(confidence / 0.9, 0.0, 1.0) * 19.0);
}

// The first `count` characters of `text` (code points), and how many they are.
std::string clipped(const std::string& text, size_t count, size_t& used) {
  size_t end = 0;
  for (used = 0; end < text.size() && used < count; ++used) {
    ++end;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  }
  return text.substr(0, end);
}

}  // namespace

std::vector<std::string> watch_screen(const std::vector<StepView>& views, int64_t steps, size_t width,
                                      size_t height) {
  double confidence = 0, entropy = 0;
  for (const StepView& view : views) confidence += view.confidence, entropy += view.entropy;
  const auto count = static_cast<double>(std::max<size_t>(1, views.size()));
  char head[160];
  const int64_t step = views.empty() ? 0 : views.front().step;
  std::snprintf(head, sizeof head, "step %3lld/%lld   t %.3f   confidence %.2f   entropy %.2f",
                static_cast<long long>(step), static_cast<long long>(steps),
                views.empty() ? 0.0 : views.front().t, confidence / count, entropy / count);
  size_t used = 0;
  std::vector<std::string> lines{clipped(head, width, used)};
  for (const StepView& view : views) {
    if (lines.size() >= std::min(height, kSamplesShown + 1)) break;
    std::string line;
    size_t left = width;
    for (size_t i = 0; i < view.tokens.size() && left > 0; ++i) {
      const TokenView& token = view.tokens[i];
      std::string text = token.text.empty() ? " \u220e" : token.text;
      if (i == 0 && text.starts_with(' ') && text.size() > 1) text.erase(0, 1);
      for (char& c : text) c = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
      text = clipped(text, left, used);
      left -= used;
      line += cat("\033[38;5;", colour_of(token.confidence), "m", text);
    }
    lines.push_back(line + "\033[0m");
  }
  return lines;
}

Watch::Watch(int64_t steps, double delay) : steps_(steps), delay_(delay) {
  if (::isatty(STDERR_FILENO) == 0)
    usage_error(
        "--watch draws on the terminal, but standard error is none; --trajectory FILE.jsonl records the "
        "same");
}

Watch::~Watch() {
  std::fprintf(stderr, "\033[?7h");
  std::fflush(stderr);
}

void Watch::show(const std::vector<StepView>& views) {
  winsize size{};
  ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
  const size_t width = size.ws_col > 0 ? size.ws_col : 80, height = size.ws_row > 1 ? size.ws_row - 1 : 23;
  const bool begins = views.empty() || views.front().step == 1;
  std::string text = "\033[?7l";  // long lines are cut, not wrapped
  if (drawn_ > 0 && !begins) text += cat("\033[", drawn_, "A");
  const std::vector<std::string> lines = watch_screen(views, steps_, width, height);
  for (const std::string& line : lines) text += "\r\033[K" + line + "\n";
  std::this_thread::sleep_until(last_ +
                                std::chrono::duration_cast<std::chrono::steady_clock::duration>(delay_));
  std::fputs((text + "\033[?7h").c_str(), stderr);
  std::fflush(stderr);
  drawn_ = lines.size();
  last_ = std::chrono::steady_clock::now();
}

}  // namespace elf::app
