#include "elf/config/schedules.h"

#include <charconv>
#include <cmath>

#include "elf/base/error.h"

namespace elf {
namespace {

// Throws unless the whole of `text` is a finite number.
double number(std::string_view text, std::string_view where, std::string_view whole) {
  double value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || stop != text.data() + text.size() || !std::isfinite(value)) {
    usage_error(where, ": found '", text, "'", whole == text ? "" : cat(" in '", whole, "'"),
                ", expected a finite number");
  }
  return value;
}

double time(std::string_view text, std::string_view where, std::string_view whole) {
  const double t = number(text, where, whole);
  if (t < 0 || t > 1)
    usage_error(where, ": found the time ", text, " in '", whole, "', expected one from 0 to 1");
  return t;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

}  // namespace

ScaleSchedule ScaleSchedule::parse(std::string_view text, std::string_view where) {
  ScaleSchedule schedule(1.0);
  if (const size_t at = text.find('@'); at != std::string_view::npos) {
    const std::string_view span = text.substr(at + 1);
    const size_t dash = span.find('-');
    if (dash == std::string_view::npos)
      usage_error(where, ": found '", text, "', expected SCALE@FROM-TO, as in 3@0.2-0.8");
    schedule.knots_ = {{0.0, number(text.substr(0, at), where, text)}};
    schedule.from_ = time(span.substr(0, dash), where, text);
    schedule.to_ = time(span.substr(dash + 1), where, text);
    if (schedule.from_ >= schedule.to_)
      usage_error(where, ": '", text, "' is an empty interval; expected FROM below TO");
    if (schedule.to_ == 1.0) schedule.to_ = 2.0;  // the end belongs to it
    return schedule;
  }
  if (text.find(':') == std::string_view::npos) return ScaleSchedule(number(text, where, text));
  schedule.knots_.clear();
  for (const std::string_view knot : split(text, ',')) {
    const size_t colon = knot.find(':');
    if (colon == std::string_view::npos)
      usage_error(where, ": found '", knot, "' in '", text, "', expected TIME:SCALE, as in 0:1,0.5:3");
    const double t = time(knot.substr(0, colon), where, text);
    if (!schedule.knots_.empty() && t <= schedule.knots_.back().first)
      usage_error(where, ": the times of '", text, "' do not rise at ", t);
    schedule.knots_.emplace_back(t, number(knot.substr(colon + 1), where, text));
  }
  return schedule;
}

ScaleSchedule ScaleSchedule::of(double constant, std::string_view text, std::string_view where) {
  return text.empty() ? ScaleSchedule(constant) : parse(text, where);
}

double ScaleSchedule::at(double t) const {
  if (t < from_ || t >= to_) return 1.0;
  if (t <= knots_.front().first) return knots_.front().second;
  for (size_t i = 1; i < knots_.size(); ++i) {
    const auto& [right, high] = knots_[i];
    if (t > right) continue;
    if (t == right) return high;
    const auto& [left, low] = knots_[i - 1];
    return low + (high - low) * (t - left) / (right - left);
  }
  return knots_.back().second;
}

std::vector<double> parse_times(std::string_view text, std::string_view where) {
  std::vector<double> times;
  for (const std::string_view part : split(text, ',')) times.push_back(time(part, where, text));
  if (times.front() > 0) times.insert(times.begin(), 0.0);
  if (times.back() < 1) times.push_back(1.0);
  for (size_t i = 1; i < times.size(); ++i) {
    if (times[i] <= times[i - 1]) usage_error(where, ": the times of '", text, "' do not rise at ", times[i]);
  }
  return times;
}

}  // namespace elf
