// Texts condensing out of noise, live in the terminal.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "elf/sample/trajectory.h"

namespace elf::app {

// One screen of a step: a line of figures and a line for each of the first samples, tokens the brighter the
// surer the model is of them (256-colour greys, a colour from 0.9 on). `width` columns, at most `height`
// lines.
std::vector<std::string> watch_screen(const std::vector<StepView>& views, int64_t steps, size_t width,
                                      size_t height);

// Redraws in place on stderr. Throws Error (usage) when that is no terminal.
class Watch {
 public:
  // Every step stays for at least `delay` seconds.
  Watch(int64_t steps, double delay);
  ~Watch();
  void show(const std::vector<StepView>& views);

 private:
  int64_t steps_;
  std::chrono::duration<double> delay_;
  std::chrono::steady_clock::time_point last_;
  size_t drawn_ = 0;  // lines on the screen
};

}  // namespace elf::app
