#include "sampler_setting.h"

#include <charconv>

#include "elf/base/error.h"
#include "elf/config/enum_names.h"
#include "elf/config/schedules.h"

namespace elf::app {
namespace {

int64_t whole_number(const std::string& text, const std::string& name, int64_t least, int64_t most) {
  int64_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || stop != text.data() + text.size() || value < least || value > most)
    usage_error(name, ": found '", text, "', expected an integer from ", least, " to ", most);
  return value;
}

uint64_t seed_number(const std::string& text, const std::string& name) {
  uint64_t value = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || stop != text.data() + text.size())
    usage_error(name, ": found '", text, "', expected an integer from 0 to 2^64 - 1");
  return value;
}

// A scale that is one number goes to `constant`, one that changes with t to `schedule`.
void set_scale(const std::string& text, const std::string& name, double& constant, std::string& schedule) {
  const ScaleSchedule parsed = ScaleSchedule::parse(text, name);
  const bool plain = text.find_first_of(":@") == std::string::npos;
  schedule = plain ? "" : text;
  if (plain) constant = parsed.at(0.0);
}

}  // namespace

void apply_sampler_setting(SamplingConfig& config, const std::string& name, const std::string& value,
                           const std::string& option) {
  if (name == "steps") {
    config.steps = whole_number(value, option, 1, kMostSamplingSteps);
    config.times.clear();
  } else if (name == "times") {
    config.steps = static_cast<int64_t>(parse_times(value, option).size()) - 1;
    config.times = value;
  } else if (name == "seed") {
    config.seed = seed_number(value, option);
  } else if (name == "sampler") {
    config.sampler = parse_enum<SamplerKind>(value, option);
  } else if (name == "sde-update") {
    config.sde_update = parse_enum<SdeUpdate>(value, option);
  } else if (name == "time-schedule") {
    config.time_schedule = parse_enum<TimeGrid>(value, option);
    config.times.clear();  // a list of the model's own would go before it
  } else if (name == "gamma") {
    const ScaleSchedule gamma = ScaleSchedule::parse(value, option);
    if (value.find_first_of(":@") != std::string::npos || gamma.at(0.0) < 0)
      usage_error(option, ": found '", value, "', expected a number from 0");
    config.gamma = gamma.at(0.0);
  } else if (name == "sc-cfg") {
    set_scale(value, option, config.self_cond_cfg, config.self_cond_cfg_schedule);
  } else if (name == "cfg") {
    set_scale(value, option, config.cfg, config.cfg_schedule);
  } else {
    usage_error(option, ": no setting '", name,
                "'; there are sampler, steps, gamma, sde-update, sc-cfg, cfg, time-schedule, times and seed");
  }
}

}  // namespace elf::app
