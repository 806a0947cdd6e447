#include "sampler_record.h"

#include "elf/config/enum_names.h"

namespace elf::app {

nlohmann::ordered_json sampler_json(const SamplingConfig& c, const FlowConfig& flow) {
  return {{"sampler", enum_name(c.sampler)},
          {"steps", c.steps},
          {"gamma", c.gamma},
          {"sde_update", enum_name(c.sde_update)},
          {"self_cond_cfg", c.self_cond_cfg},
          {"self_cond_cfg_schedule", c.self_cond_cfg_schedule},
          {"cfg", c.cfg},
          {"cfg_schedule", c.cfg_schedule},
          {"time_schedule", enum_name(c.time_schedule)},
          {"times", c.times},
          {"p_mean", c.p_mean},
          {"p_std", c.p_std},
          {"noise_scale", flow.denoiser_noise_scale},
          {"t_eps", flow.t_eps}};
}

}  // namespace elf::app
