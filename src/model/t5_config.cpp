#include "elf/model/t5_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"

namespace elf {
namespace fs = std::filesystem;
using json = nlohmann::json;
namespace {

struct Preset {
  const char* name;
  int64_t d_model, d_kv, d_ff, layers, heads;
};
// t5-tiny and t5-mini have the sizes of the "efficient" family; t5-nano is ours, for minutes on a CPU.
constexpr Preset kPresets[] = {{"t5-nano", 64, 16, 256, 2, 4},     {"t5-tiny", 256, 64, 1024, 4, 4},
                               {"t5-mini", 384, 64, 1536, 4, 8},   {"t5-small", 512, 64, 2048, 6, 8},
                               {"t5-base", 768, 64, 3072, 12, 12}, {"t5-large", 1024, 64, 4096, 24, 16}};

constexpr int64_t kLargestSize = int64_t{1} << 24;  // products of two or three fit 64 bits
constexpr int64_t kMostLayers = 10'000;

int64_t positive(const json& config, const char* key, int64_t fallback, const std::string& file) {
  if (!config.contains(key) && fallback > 0) return fallback;
  if (!config.contains(key))
    usage_error(file, ": key '", key, "' is missing; is this the config.json of a T5?");
  const json& value = config.at(key);
  if (!value.is_number_integer() || value.get<int64_t>() <= 0 || value.get<int64_t>() > kLargestSize)
    usage_error(file, ": ", key, ": found ", value.dump(), ", expected an integer from 1 to ", kLargestSize);
  return value.get<int64_t>();
}

bool is_gated(const json& config, const std::string& file) {
  const std::string kind = config.value("feed_forward_proj", "relu");
  if (kind == "relu") return false;
  if (kind == "gated-gelu") return true;
  usage_error(file, ": feed_forward_proj '", kind, "' is not supported; expected relu or gated-gelu");
}

}  // namespace

const std::vector<std::string>& t5_preset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Preset& preset : kPresets) list.emplace_back(preset.name);
    return list;
  }();
  return names;
}

T5Config t5_preset(const std::string& name) {
  for (const Preset& preset : kPresets) {
    if (name != preset.name) continue;
    T5Config config;
    config.d_model = preset.d_model;
    config.d_kv = preset.d_kv;
    config.d_ff = preset.d_ff;
    config.num_layers = config.num_decoder_layers = preset.layers;
    config.num_heads = preset.heads;
    return config;
  }
  std::string known;
  for (const std::string& each : t5_preset_names()) known += (known.empty() ? "" : ", ") + each;
  usage_error("preset '", name, "' is not known; expected one of ", known);
}

T5Config read_t5_config(const fs::path& path) {
  const std::string file = path.string();
  const json config = parse_json(read_file(path));
  if (!config.is_object()) usage_error(file, ": is no JSON object");
  try {
    const std::string type = config.value("model_type", "t5");
    if (type == "umt5")
      usage_error(file, ": model_type umt5: per-block bias not supported; take a T5, T5 v1.1 or Flan-T5");
    if (type != "t5" && type != "mt5") usage_error(file, ": model_type '", type, "' is no T5; expected t5");
    T5Config result;
    result.vocab_size = positive(config, "vocab_size", 0, file);
    result.d_model = positive(config, "d_model", 0, file);
    result.d_kv = positive(config, "d_kv", 0, file);
    result.d_ff = positive(config, "d_ff", 0, file);
    result.num_layers = positive(config, "num_layers", 0, file);
    const bool says_decoder =
        config.contains("num_decoder_layers") && !config["num_decoder_layers"].is_null();
    result.num_decoder_layers =
        says_decoder ? positive(config, "num_decoder_layers", 0, file) : result.num_layers;
    if (std::max(result.num_layers, result.num_decoder_layers) > kMostLayers)
      usage_error(file, ": num_layers ", result.num_layers, ", num_decoder_layers ",
                  result.num_decoder_layers, ": expected at most ", kMostLayers);
    result.num_heads = positive(config, "num_heads", 0, file);
    result.num_buckets = positive(config, "relative_attention_num_buckets", 32, file);
    result.max_distance = positive(config, "relative_attention_max_distance", 128, file);
    if (result.num_buckets < 4 || result.num_buckets % 4 != 0 ||
        result.max_distance <= result.num_buckets / 2) {
      usage_error(file, ": relative_attention_num_buckets ", result.num_buckets,
                  " with relative_attention_max_distance ", result.max_distance,
                  ": expected a multiple of 4 and a distance above half of it");
    }
    result.eps = config.value("layer_norm_epsilon", 1e-6);
    result.gated = is_gated(config, file);
    result.tied_head = config.value("tie_word_embeddings", true);
    return result;
  } catch (const json::exception& error) {
    usage_error(file, ": a key has the wrong type: ", error.what());
  }
}

json t5_config_json(const T5Config& config) {
  return {{"architectures", {"T5ForConditionalGeneration"}},
          {"model_type", "t5"},
          {"vocab_size", config.vocab_size},
          {"d_model", config.d_model},
          {"d_kv", config.d_kv},
          {"d_ff", config.d_ff},
          {"num_layers", config.num_layers},
          {"num_decoder_layers", config.num_decoder_layers},
          {"num_heads", config.num_heads},
          {"relative_attention_num_buckets", config.num_buckets},
          {"relative_attention_max_distance", config.max_distance},
          {"layer_norm_epsilon", config.eps},
          {"feed_forward_proj", config.gated ? "gated-gelu" : "relu"},
          {"dense_act_fn", config.gated ? "gelu_new" : "relu"},
          {"is_gated_act", config.gated},
          {"tie_word_embeddings", config.tied_head},
          {"dropout_rate", 0.0},
          {"initializer_factor", 1.0},
          {"is_encoder_decoder", true},
          {"use_cache", true},
          {"pad_token_id", 0},
          {"eos_token_id", 1},
          {"decoder_start_token_id", 0},
          {"torch_dtype", "float32"}};
}

}  // namespace elf
