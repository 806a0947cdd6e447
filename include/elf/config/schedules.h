// What users write for a guidance scale that changes with the flow time, and for their own list of times.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace elf {

// A guidance scale as a function of the flow time t in [0, 1].
class ScaleSchedule {
 public:
  explicit ScaleSchedule(double constant) : knots_{{0.0, constant}} {}

  // "2": the same at every t. "0:1,0.5:3": 1 at t = 0, 3 at t = 0.5, linear between, constant outside.
  // "3@0.2-0.8": 3 for 0.2 <= t < 0.8, elsewhere 1 (no guidance). Throws Error (usage) naming `where`.
  static ScaleSchedule parse(std::string_view text, std::string_view where);
  // `text` when there is one, else the constant.
  static ScaleSchedule of(double constant, std::string_view text, std::string_view where);

  double at(double t) const;

 private:
  std::vector<std::pair<double, double>> knots_;  // (t, scale), t rising
  double from_ = 0.0, to_ = 2.0;                  // outside [from, to) the scale is 1
};

// "0.1,0.3,0.7": rising times in [0, 1]; 0 at the start and 1 at the end are added where they are missing.
// Returns N + 1 values for N steps. Throws Error (usage) naming `where`.
std::vector<double> parse_times(std::string_view text, std::string_view where);

}  // namespace elf
