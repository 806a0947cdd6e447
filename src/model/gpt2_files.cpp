// A GPT-2 in a Hugging Face folder.
#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/base/log.h"
#include "elf/model/gpt2.h"
#include "elf/text/gpt2_tokenizer.h"
#include "hugging_face.h"

namespace elf {
namespace fs = std::filesystem;
using json = nlohmann::json;
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 24;  // products of two or three fit 64 bits
constexpr int64_t kMostLayers = 10'000;

int64_t positive(const json& config, const char* key, int64_t fallback, const std::string& file) {
  if (!config.contains(key) || config.at(key).is_null()) {
    if (fallback > 0) return fallback;
    usage_error(file, ": key '", key, "' is missing; is this the config.json of a GPT-2?");
  }
  const json& value = config.at(key);
  if (!value.is_number_integer() || value.get<int64_t>() <= 0 || value.get<int64_t>() > kLargestSize)
    usage_error(file, ": ", key, ": found ", value.dump(), ", expected an integer from 1 to ", kLargestSize);
  return value.get<int64_t>();
}

}  // namespace

Gpt2Config read_gpt2_config(const fs::path& path) {
  const std::string file = path.string();
  const json config = parse_json(read_file(path));
  if (!config.is_object()) usage_error(file, ": is no JSON object");
  try {
    const std::string type = config.value("model_type", "gpt2");
    if (type != "gpt2") usage_error(file, ": model_type '", type, "' is no GPT-2; expected gpt2");
    Gpt2Config result;
    result.vocab_size = positive(config, "vocab_size", 0, file);
    result.positions = positive(config, "n_positions", 0, file);
    result.width = positive(config, "n_embd", 0, file);
    result.layers = positive(config, "n_layer", 0, file);
    result.heads = positive(config, "n_head", 0, file);
    result.inner = positive(config, "n_inner", 4 * result.width, file);
    if (result.layers > kMostLayers)
      usage_error(file, ": n_layer: found ", result.layers, ", expected at most ", kMostLayers);
    if (result.width % result.heads != 0)
      usage_error(file, ": n_embd ", result.width, " is no multiple of n_head ", result.heads);
    result.eps = config.value("layer_norm_epsilon", 1e-5);
    const std::string activation = config.value("activation_function", "gelu_new");
    result.tanh_gelu = activation != "gelu";
    if (activation != "gelu" && activation != "gelu_new" && activation != "gelu_pytorch_tanh")
      usage_error(file, ": activation_function '", activation,
                  "' is not supported; expected gelu_new or gelu");
    if (!config.value("tie_word_embeddings", true))
      usage_error(file,
                  ": tie_word_embeddings: found false, expected true: GPT-2's vocabulary head is its "
                  "embedding table");
    result.scale_by_head_width = config.value("scale_attn_weights", true);
    result.scale_by_layer = config.value("scale_attn_by_inverse_layer_idx", false);
    return result;
  } catch (const json::exception& error) {
    usage_error(file, ": a key has the wrong type: ", error.what());
  }
}

std::vector<std::string> gpt2_files(const fs::path& folder) {
  std::vector<std::string> names = {"config.json"};
  for (const fs::path& file : hugging_face_weight_files(folder, "a GPT-2"))
    names.push_back(file.filename().string());
  for (const char* name : {Gpt2Tokenizer::kVocabularyFile, Gpt2Tokenizer::kMergesFile}) {
    if (fs::exists(folder / name)) names.emplace_back(name);
  }
  return names;
}

// Takes the weights out of the files' tensors, collecting what is wrong.
struct Gpt2Loader {
  TensorMap tensors;
  at::Device device;
  at::ScalarType dtype;
  std::string wrong{};
  std::map<std::string, TensorShape> stored{};

  at::Tensor take(const std::string& name, at::IntArrayRef shape) {
    auto found = tensors.find("transformer." + name);
    if (found == tensors.end()) found = tensors.find(name);
    if (found == tensors.end()) {
      wrong += cat("\n  ", name, ": missing, expected ", shape);
    } else if (found->second.sizes() != shape) {
      wrong += cat("\n  ", found->first, ": found ", found->second.sizes(), ", expected ", shape);
    } else if (!found->second.is_floating_point()) {
      wrong += cat("\n  ", found->first, ": found dtype ", found->second.scalar_type(),
                   ", expected a floating one");
    } else {
      const at::Tensor taken = found->second;
      stored[found->first] = {taken.scalar_type(), taken.sizes().vec()};
      tensors.erase(found);
      return taken.to(device, dtype).contiguous();
    }
    return {};
  }

  Gpt2::Norm norm(const std::string& name, int64_t width) {
    return {take(name + ".weight", {width}), take(name + ".bias", {width})};
  }

  // Stored (in, out).
  Gpt2::Map map(const std::string& name, int64_t in, int64_t out) {
    const at::Tensor weight = take(name + ".weight", {in, out});
    return {weight.defined() ? weight.t().contiguous() : weight, take(name + ".bias", {out})};
  }

  void fill(Gpt2& model) {
    const Gpt2Config& c = model.config_;
    model.token_table_ = take("wte.weight", {c.vocab_size, c.width});
    model.position_table_ = take("wpe.weight", {c.positions, c.width});
    for (int64_t i = 0; i < c.layers; ++i) {
      const std::string block = cat("h.", i, ".");
      model.blocks_.push_back(
          {norm(block + "ln_1", c.width), map(block + "attn.c_attn", c.width, 3 * c.width),
           map(block + "attn.c_proj", c.width, c.width), norm(block + "ln_2", c.width),
           map(block + "mlp.c_fc", c.width, c.inner), map(block + "mlp.c_proj", c.inner, c.width)});
    }
    model.final_norm_ = norm("ln_f", c.width);
    model.stored_ = stored;
  }

  void log_rest(const fs::path& folder) const {
    std::string unknown;
    for (const auto& [name, tensor] : tensors) {
      const bool mask = name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");  // constants
      if (!mask && name != "lm_head.weight") unknown += (unknown.empty() ? "" : ", ") + name;
    }
    if (!unknown.empty())
      log_warning(cat(folder.string(), ": tensors that no part of a GPT-2 uses: ", unknown));
  }
};

Gpt2 Gpt2::load(const fs::path& folder, at::Device device, at::ScalarType dtype) {
  const std::vector<fs::path> files = hugging_face_weight_files(folder, "a GPT-2");
  Gpt2 model;
  model.config_ = read_gpt2_config(folder / "config.json");
  Gpt2Loader loader{read_hugging_face_weights(files), device, dtype};
  loader.fill(model);
  if (!loader.wrong.empty())
    usage_error(folder.string(), ": the weights do not fit its config.json:", loader.wrong);
  loader.log_rest(folder);
  std::string digests;
  for (const fs::path& file : files) digests += digest_of_file(file);
  model.digest_ = files.size() == 1 ? digests : elf::digest(digests);
  return model;
}

}  // namespace elf
