// A T5 in a Hugging Face folder.
#include <ATen/ATen.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "elf/model/t5.h"
#include "elf/tensor/safetensors.h"
#include "elf/tensor/torch_pickle.h"
#include "t5_weights.h"

namespace elf {
namespace fs = std::filesystem;
using json = nlohmann::json;
namespace {

// One file of weights, by its ending: safetensors, or a state dict of torch.save.
TensorMap read_weight_file(const fs::path& path) {
  return path.extension() == ".bin" ? read_torch_state_dict(path) : read_safetensors(path);
}

// The files that an index names: weight_map is tensor name -> file of the same folder.
std::map<std::string, std::set<std::string>> read_index(const fs::path& index_file) {
  const json index = json::parse(read_file(index_file), nullptr, /*allow_exceptions=*/false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    usage_error(index_file.string(), ": expected a JSON object with weight_map: tensor name -> file");
  }
  std::map<std::string, std::set<std::string>> names_of_file;
  for (const auto& [name, file] : index["weight_map"].items()) {
    if (!file.is_string() || fs::path(file.get<std::string>()).has_parent_path()) {
      usage_error(index_file.string(), ": weight_map.", name,
                  ": expected the name of a file beside it, found ", file.dump());
    }
    names_of_file[file.get<std::string>()].insert(name);
  }
  return names_of_file;
}

TensorMap read_shards(const fs::path& index_file) {
  TensorMap all;
  for (const auto& [file, names] : read_index(index_file)) {
    const fs::path path = index_file.parent_path() / file;
    TensorMap shard = read_weight_file(path);
    for (const std::string& name : names) {
      const auto found = shard.find(name);
      if (found == shard.end())
        usage_error(path.string(), ": has no tensor '", name, "', which ", index_file.string(),
                    " says it has");
      all[name] = found->second;
    }
  }
  return all;
}

// In the order of preference; the published folders often hold several.
constexpr const char* kWeightFiles[] = {"model.safetensors", "model.safetensors.index.json",
                                        "pytorch_model.bin", "pytorch_model.bin.index.json"};

std::string weight_file_of(const fs::path& folder) {
  for (const char* name : kWeightFiles) {
    if (fs::exists(folder / name)) return name;
  }
  usage_error(folder.string(), ": holds none of model.safetensors, pytorch_model.bin and their ",
              ".index.json; expected a Hugging Face folder of a T5");
}

TensorMap read_weights(const fs::path& folder) {
  const fs::path path = folder / weight_file_of(folder);
  return path.extension() == ".json" ? read_shards(path) : read_weight_file(path);
}

// UMT5 and its like have a table in every block.
void refuse_many_bias_tables(const TensorMap& tensors, const fs::path& folder) {
  int64_t tables = 0;
  for (const auto& [name, tensor] : tensors) {
    tables += name.starts_with("encoder.") && name.ends_with("SelfAttention.relative_attention_bias.weight");
  }
  if (tables > 1) {
    usage_error(
        folder.string(), ": found ", tables,
        " relative bias tables in the encoder, expected one, in block 0: per-block bias not supported");
  }
}

bool is_embedding_copy(const std::string& name) {
  return name == "shared.weight" || name == "encoder.embed_tokens.weight" ||
         name == "decoder.embed_tokens.weight";
}

// Takes the wanted weights out of `tensors`; reports every one that is missing or mis-shaped.
void take_weights(const std::vector<T5Weight>& wanted, TensorMap& tensors, const fs::path& folder) {
  std::string wrong;
  for (const T5Weight& weight : wanted) {
    auto found = tensors.find(weight.name);
    if (found == tensors.end() && weight.name == "shared.weight")
      found = tensors.find("encoder.embed_tokens.weight");
    const at::IntArrayRef shape(weight.shape);
    if (found == tensors.end()) {
      wrong += cat("\n  ", weight.name, ": missing, expected ", shape);
    } else if (found->second.sizes() != shape) {
      wrong += cat("\n  ", found->first, ": found ", found->second.sizes(), ", expected ", shape);
    } else if (!found->second.is_floating_point()) {
      wrong += cat("\n  ", found->first, ": found dtype ", found->second.scalar_type(),
                   ", expected a floating one");
    } else if (found->second.scalar_type() == at::kHalf && !at::isfinite(found->second).all().item<bool>()) {
      wrong += cat("\n  ", found->first, ": float16 numbers that overflowed; take the float32 weights");
    } else {
      *weight.tensor = found->second.to(at::kFloat);
    }
  }
  if (!wrong.empty()) usage_error(folder.string(), ": the weights do not fit its config.json:", wrong);
}

void log_rest(const std::vector<T5Weight>& wanted, const TensorMap& tensors, const fs::path& folder) {
  std::set<std::string> names;
  for (const T5Weight& weight : wanted) names.insert(weight.name);
  int64_t decoder = 0;
  std::string unknown;
  for (const auto& [name, tensor] : tensors) {
    if (names.contains(name) || is_embedding_copy(name)) continue;
    if (name.starts_with("decoder.") || name == "lm_head.weight") {
      ++decoder;
    } else {
      unknown += (unknown.empty() ? "" : ", ") + name;
    }
  }
  if (decoder > 0) log_info(cat(folder.string(), ": ", decoder, " tensors of the decoder left out"));
  if (!unknown.empty()) log_warning(cat(folder.string(), ": tensors that no part of a T5 uses: ", unknown));
}

}  // namespace

T5Model load_t5(const fs::path& folder, bool with_decoder) {
  if (!fs::is_directory(folder))
    usage_error(folder.string(), ": no such folder; expected a Hugging Face folder of a T5");
  if (!fs::exists(folder / "config.json"))
    usage_error(folder.string(), ": holds no config.json; expected a Hugging Face folder of a T5");
  T5Model model;
  model.config = read_t5_config(folder / "config.json");
  TensorMap tensors = read_weights(folder);
  refuse_many_bias_tables(tensors, folder);
  const std::vector<T5Weight> wanted = all_weights(model, with_decoder);
  take_weights(wanted, tensors, folder);
  log_rest(wanted, tensors, folder);
  return model;
}

std::vector<std::string> t5_files(const fs::path& folder) {
  std::vector<std::string> files = {"config.json"};
  const std::string weights = weight_file_of(folder);
  files.push_back(weights);
  if (fs::path(weights).extension() == ".json") {
    for (const auto& [file, names] : read_index(folder / weights)) files.push_back(file);
  }
  for (const char* name : {"pretraining.json"}) {
    if (fs::exists(folder / name)) files.emplace_back(name);
  }
  return files;
}

void save_t5(const fs::path& folder, const T5Model& model) {
  T5Model shared = model;  // shares the tensors
  TensorMap tensors;
  for (const T5Weight& weight : all_weights(shared, model.has_decoder()))
    tensors[weight.name] = *weight.tensor;
  write_safetensors(folder / "model.safetensors", tensors, {{"format", "pt"}});
  json config = t5_config_json(model.config);
  if (!model.has_decoder()) config["architectures"] = {"T5EncoderModel"};
  write_file(folder / "config.json", config.dump(2) + "\n");
}

}  // namespace elf
