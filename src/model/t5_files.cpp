// A T5 in a Hugging Face folder.
#include <ATen/ATen.h>

#include <nlohmann/json.hpp>
#include <set>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "elf/model/t5.h"
#include "elf/tensor/safetensors.h"
#include "hugging_face.h"
#include "t5_weights.h"

namespace elf {
namespace fs = std::filesystem;
using json = nlohmann::json;
namespace {

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
  TensorMap tensors = read_hugging_face_weights(hugging_face_weight_files(folder, "a T5"));
  refuse_many_bias_tables(tensors, folder);
  const std::vector<T5Weight> wanted = all_weights(model, with_decoder);
  take_weights(wanted, tensors, folder);
  log_rest(wanted, tensors, folder);
  return model;
}

std::vector<std::string> t5_files(const fs::path& folder) {
  std::set<std::string> files = {"config.json", hugging_face_weight_entry(folder, "a T5")};
  for (const fs::path& file : hugging_face_weight_files(folder, "a T5"))
    files.insert(file.filename().string());
  if (fs::exists(folder / "pretraining.json")) files.insert("pretraining.json");
  return {files.begin(), files.end()};
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
