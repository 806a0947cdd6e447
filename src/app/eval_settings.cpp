#include "eval_settings.h"

#include <charconv>
#include <cmath>

#include "elf/base/error.h"
#include "elf/config/enum_names.h"

namespace elf::app {
namespace {

template <class Number>
Number parse_number(const std::string& key, const std::string& value, Number least) {
  Number number{};
  const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool whole = code == std::errc() && end == value.data() + value.size();
  if (!whole || !(number >= least) || !std::isfinite(static_cast<double>(number)))
    usage_error("--setting ", key, ": found '", value, "', expected a number from ", least);
  return number;
}

void set(SamplingConfig& config, const std::string& key, const std::string& value) {
  const std::string place = "--setting " + key;
  if (key == "sampler") {
    config.sampler = parse_enum<SamplerKind>(value, place);
  } else if (key == "time-schedule") {
    config.time_schedule = parse_enum<TimeGrid>(value, place);
    config.times.clear();  // a list of the model's own would go before it
  } else if (key == "sde-update") {
    config.sde_update = parse_enum<SdeUpdate>(value, place);
  } else if (key == "steps") {
    config.steps = parse_number<int64_t>(key, value, 1);
    config.times.clear();
  } else if (key == "batch-size") {
    config.batch_size = parse_number<int64_t>(key, value, 1);
  } else if (key == "gamma") {
    config.gamma = parse_number<double>(key, value, 0);
  } else if (key == "sc-cfg") {
    config.self_cond_cfg = parse_number<double>(key, value, 0);
    config.self_cond_cfg_schedule.clear();
  } else if (key == "cfg") {
    config.cfg = parse_number<double>(key, value, 0);
    config.cfg_schedule.clear();
  } else {
    usage_error("--setting: '", key,
                "' is not one of sampler, steps, gamma, sde-update, sc-cfg, cfg, time-schedule, batch-size");
  }
}

std::string name_of(const SamplingConfig& c) {
  std::string name = cat(enum_name(c.sampler), "-", c.steps);
  if (c.sampler == SamplerKind::kSde) name += cat("-gamma", c.gamma);
  if (c.sampler == SamplerKind::kSde && c.sde_update != SdeUpdate::kPublished)
    name += cat("-", enum_name(c.sde_update));
  name += cat("-w", c.self_cond_cfg);
  if (c.cfg != 1) name += cat("-cfg", c.cfg);
  if (c.time_schedule != TimeGrid::kLogitNormal) name += cat("-", enum_name(c.time_schedule));
  return name;
}

}  // namespace

NamedSetting parse_setting(const std::string& text, const SamplingConfig& of_model) {
  SamplingConfig config = of_model;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string item = text.substr(begin, end - begin);
    begin = end + 1;
    const size_t sign = item.find('=');
    if (sign == std::string::npos)
      usage_error("--setting: found '", item, "', expected KEY=VALUE,KEY=VALUE,...");
    set(config, item.substr(0, sign), item.substr(sign + 1));
  }
  return {name_of(config), config};
}

std::string setting_text(const SamplingConfig& c) {
  std::string text =
      cat("sampler=", enum_name(c.sampler), ",gamma=", c.gamma, ",sde-update=", enum_name(c.sde_update));
  if (c.times.empty()) text += cat(",steps=", c.steps, ",time-schedule=", enum_name(c.time_schedule));
  if (c.self_cond_cfg_schedule.empty()) text += cat(",sc-cfg=", c.self_cond_cfg);
  if (c.cfg_schedule.empty()) text += cat(",cfg=", c.cfg);
  return text;
}

std::string setting_help() {
  return "Sampling setting, repeatable: sampler, steps, gamma, sde-update, sc-cfg, cfg, time-schedule as "
         "KEY=VALUE,KEY=VALUE; "
         "what is not given is the model's own";
}

}  // namespace elf::app
