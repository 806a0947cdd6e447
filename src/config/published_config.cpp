#include "elf/config/published_config.h"

#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/base/log.h"
#include "schema.h"

namespace elf {
namespace fs = std::filesystem;
using json = nlohmann::json;
namespace {

constexpr std::pair<const char*, const char*> kNames[] = {
    {"hidden_size", "model.hidden_size"},
    {"depth", "model.depth"},
    {"num_heads", "model.num_heads"},
    {"text_encoder_dim", "model.latent_dim"},
    {"bottleneck_dim", "model.bottleneck_dim"},
    {"vocab_size", "model.vocab_size"},
    {"max_length", "model.max_length"},
    {"mlp_ratio", "model.mlp_ratio"},
    {"num_time_tokens", "model.num_time_tokens"},
    {"num_self_cond_cfg_tokens", "model.num_self_cond_cfg_tokens"},
    {"num_model_mode_tokens", "model.num_model_mode_tokens"},
    {"max_input_length", "data.max_input_length"},
    {"latent_mean", "latents.mean"},
    {"latent_std", "latents.std"},
    {"pad_token", "flow.pad_token"},
    {"time_schedule", "flow.time_schedule"},
    {"denoiser_p_mean", "flow.denoiser_p_mean"},
    {"denoiser_p_std", "flow.denoiser_p_std"},
    {"denoiser_noise_scale", "flow.denoiser_noise_scale"},
    {"t_eps", "flow.t_eps"},
    {"decoder_prob", "flow.decoder_prob"},
    {"decoder_noise_scale", "flow.decoder_noise_scale"},
    {"decoder_p_mean", "flow.decoder_p_mean"},
    {"decoder_p_std", "flow.decoder_p_std"},
    {"label_drop_prob", "flow.label_drop_prob"},
    {"self_cond_prob", "flow.self_cond_prob"},
    {"self_cond_cfg_min", "flow.self_cond_cfg_min"},
    {"self_cond_cfg_max", "flow.self_cond_cfg_max"},
    {"epochs", "train.epochs"},
    {"global_batch_size", "train.global_batch_size"},
    {"seed", "train.seed"},
    {"blr", "optimizer.blr"},
    {"weight_decay", "optimizer.weight_decay"},
    {"warmup_steps", "optimizer.warmup_steps"},
    {"optimizer", "optimizer.kind"},
    {"ema_decay1", "optimizer.ema_decay"}};

// Sampling goes by the same noise as training, and by what was published for the kind of task.
const std::vector<std::string> kConditional = {"flow.pad_token=eos",        "flow.decoder_noise_scale=1.0",
                                               "flow.label_drop_prob=0.1",  "sampling.sampler=ode",
                                               "sampling.steps=64",         "sampling.cfg=2.0",
                                               "sampling.self_cond_cfg=1.0"};

using Assignments = std::vector<std::string>;

std::string dotted_name(const std::string& published) {
  for (const auto& [name, dotted] : kNames) {
    if (published == name) return dotted;
  }
  return "";
}

RunConfig configured(const fs::path& file, const Assignments& taken, const Assignments& assignments) {
  Assignments all = taken;
  all.insert(all.end(), assignments.begin(), assignments.end());
  return parse_run_config("", file.string(), fs::absolute(file).parent_path(), all);
}

RunConfig from_dims(const json& dims, const fs::path& file, const Assignments& assignments) {
  Assignments taken;
  for (const auto& [key, value] : dims.items()) {
    const std::string name = dotted_name(key);
    if (name.empty()) usage_error(file.string(), ": dims.", key, " is not known");
    if (!value.is_null())
      taken.push_back(name + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return configured(file, taken, assignments);
}

std::vector<RunConfig> from_json(const fs::path& file, const Assignments& assignments) {
  const json content = parse_json(read_file(file));
  if (!content.is_object()) usage_error(file.string(), ": is no JSON object");
  const auto has_dims = [](const json& value) {
    return value.is_object() && value.contains("dims") && value.at("dims").is_object();
  };
  std::vector<RunConfig> configs;
  if (has_dims(content)) configs.push_back(from_dims(content.at("dims"), file, assignments));
  for (const auto& [name, value] : content.items()) {
    if (has_dims(value)) configs.push_back(from_dims(value.at("dims"), file, assignments));
  }
  if (configs.empty()) usage_error(file.string(), ": expected an object with `dims`: the sizes of a network");
  return configs;
}

// Whether the YAML is one of ours: it has a section, or names a base.
bool has_sections(const YAML::Node& root) {
  for (const auto& entry : root) {
    const std::string key = entry.first.as<std::string>("");
    if (key == "base" || (config::is_section(key) && entry.second.IsMap())) return true;
  }
  return root.size() == 0;
}

RunConfig from_flat(const YAML::Node& root, const fs::path& file, const Assignments& assignments) {
  Assignments taken;
  std::string left_out;
  for (const auto& entry : root) {
    const std::string key = entry.first.as<std::string>(""), name = dotted_name(key);
    if (name.empty()) left_out += (left_out.empty() ? "" : ", ") + key;
    if (name.empty() || entry.second.IsNull()) continue;
    if (!entry.second.IsScalar()) usage_error(file.string(), ": ", key, ": expected one value");
    taken.push_back(name + "=" + entry.second.Scalar());
  }
  if (taken.empty())
    usage_error(file.string(), ": holds neither sections of ours nor names of the published code");
  if (!left_out.empty()) log_info(cat(file.string(), ": of no use here: ", left_out));
  return configured(file, taken, assignments);
}

}  // namespace

std::vector<RunConfig> load_published_config(const fs::path& file, const Assignments& assignments) {
  if (file.extension() == ".json") return from_json(file, assignments);
  YAML::Node root;
  try {
    root = YAML::Load(read_file(file));
  } catch (const YAML::Exception& error) {
    usage_error(file.string(), ": not valid YAML: ", error.what());
  }
  if (!root.IsMap() || has_sections(root)) return {load_run_config(file, assignments)};
  return {from_flat(root, file, assignments)};
}

RunConfig published_preset(const std::string& name, const Assignments& assignments) {
  Assignments taken;
  if (name == "elf-b-owt" || name == "elf-m-owt" || name == "elf-l-owt") {
    taken = {"model.max_length=1024"};
  } else if (name == "elf-b-wmt14-de-en") {
    taken = {"model.max_length=128", "data.max_input_length=64"};
  } else if (name == "elf-b-xsum") {
    taken = {"model.max_length=1088", "data.max_input_length=1024"};
  } else {
    usage_error("preset '", name,
                "' is not known; expected elf-b-owt, elf-m-owt, elf-l-owt, elf-b-wmt14-de-en or elf-b-xsum");
  }
  if (taken.size() > 1) taken.insert(taken.end(), kConditional.begin(), kConditional.end());
  taken.push_back("model.preset=" + name.substr(0, 5));
  return configured(name, taken, assignments);
}

}  // namespace elf
