#include "eval_settings.h"

#include <algorithm>

#include "elf/base/error.h"
#include "elf/config/enum_names.h"
#include "sampler_setting.h"

namespace elf::app {
namespace {

std::string scale_text(double constant, const std::string& schedule) {
  return schedule.empty() ? cat(constant) : schedule;
}

std::string name_of(const SamplingConfig& c) {
  std::string name = cat(enum_name(c.sampler), "-", c.steps);
  if (c.sampler == SamplerKind::kSde) name += cat("-gamma", c.gamma);
  if (c.sampler == SamplerKind::kSde && c.sde_update != SdeUpdate::kPublished)
    name += cat("-", enum_name(c.sde_update));
  name += "-w" + scale_text(c.self_cond_cfg, c.self_cond_cfg_schedule);
  if (c.cfg != 1 || !c.cfg_schedule.empty()) name += "-cfg" + scale_text(c.cfg, c.cfg_schedule);
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
    const std::string key = item.substr(0, sign);
    if (key == "seed" || key == "times")
      usage_error("--setting: no ", key,
                  " here: seeds have an option, --seeds, and times commas of their own");
    apply_sampler_setting(config, key, item.substr(sign + 1), "--setting " + key);
  }
  return {name_of(config), config};
}

std::string setting_text(const SamplingConfig& c) {
  std::string text =
      cat("sampler=", enum_name(c.sampler), ",gamma=", c.gamma, ",sde-update=", enum_name(c.sde_update));
  if (c.times.empty()) text += cat(",steps=", c.steps, ",time-schedule=", enum_name(c.time_schedule));
  const auto add = [&](const char* name, double constant, const std::string& schedule) {
    const bool of_model = schedule.find(',') != std::string::npos;  // parse_setting reads none such
    if (!of_model) text += cat(",", name, "=", scale_text(constant, schedule));
  };
  add("sc-cfg", c.self_cond_cfg, c.self_cond_cfg_schedule);
  add("cfg", c.cfg, c.cfg_schedule);
  return text;
}

std::string setting_help() {
  return "Sampling setting, repeatable: sampler, steps, gamma, sde-update, sc-cfg, cfg, time-schedule as "
         "KEY=VALUE,KEY=VALUE; "
         "what is not given is the model's own";
}

}  // namespace elf::app
