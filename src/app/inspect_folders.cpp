// elf-inspect on folders: runs, checkpoints, model directories, encoders, tables, tokenizers.
#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/manifest.h"
#include "elf/config/run_config.h"
#include "elf/model/t5.h"
#include "elf/model/token_table.h"
#include "elf/model/weight_map.h"
#include "inspect.h"

namespace elf::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json config_fields(const RunConfig& config) {
  Json fields = Json::object();
  for (const auto& [key, value] : flat_fields(config)) fields[key] = value;
  return fields;
}

Json read_object(const fs::path& path) {
  Json object = Json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) usage_error(path.string(), ": is no JSON object");
  return object;
}

// Tensors, parameters, step and hash of a checkpoint's folder.
void add_checkpoint(const fs::path& folder, Json& object) {
  if (const std::string problem = manifest_problem(folder); !problem.empty())
    usage_error(folder.string(), ": ", problem);
  object["hash"] = manifest_digest(folder);
  const Json state = read_object(folder / "state.json");
  if (state.contains("step")) object["step"] = state["step"];
  describe_safetensors(folder / "model.safetensors", object);
}

void fill_run(const fs::path& run, Json& object) {
  object["config"] = config_fields(load_run_config(run / "config.yaml"));
  std::string name;
  std::error_code error;
  if (fs::exists(run / "checkpoints" / "latest", error)) name = read_file(run / "checkpoints" / "latest");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  std::vector<std::string> checkpoints;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", error)) {
    if (entry.is_directory()) checkpoints.push_back(entry.path().filename().string());
  }
  std::sort(checkpoints.begin(), checkpoints.end());
  object["checkpoints"] = checkpoints;
  object["latest"] = name;
  if (name.empty()) usage_error(run.string(), ": it has no checkpoint yet");
  add_checkpoint(run / "checkpoints" / name, object);
}

void fill_checkpoint(const fs::path& folder, Json& object) {
  add_checkpoint(folder, object);
  const fs::path config = fs::absolute(folder).lexically_normal().parent_path().parent_path() / "config.yaml";
  if (fs::exists(config)) object["config"] = config_fields(load_run_config(config));
}

void fill_model(const fs::path& folder, Json& object) {
  if (const std::string problem = manifest_problem(folder); !problem.empty())
    usage_error(folder.string(), ": ", problem);
  object["hash"] = manifest_digest(folder);
  const Json facts = read_object(folder / "model.json");
  for (const auto& [key, value] : facts.items()) object[key] = value;
  const RunConfig config = load_run_config(folder / "config.yaml");
  object["vocabulary"] = config.model.vocab_size;
  object["max_length"] = config.model.max_length;
  object["has_tokenizer"] = !config.data.tokenizer.empty();
  object["has_encoder"] = has_latents(config.latents);
  describe_safetensors(folder / "model.safetensors", object);
  object["parameters"] = parameter_count(config.model);  // int8 stores scales beside them
  object["config"] = config_fields(config);
}

void fill_encoder(const fs::path& folder, Json& object) {
  T5Model model = load_t5(folder);
  const T5Config& config = model.config;
  object["files"] = t5_files(folder);
  object["vocabulary"] = config.vocab_size;
  object["d_model"] = config.d_model;
  object["layers"] = config.num_layers;
  object["heads"] = config.num_heads;
  object["gated"] = config.gated;
  int64_t parameters = 0;
  Json tensors = Json::object();
  for (const ParamRef& param : t5_params(model)) {
    parameters += param.tensor.numel();
    tensors[param.name] = {{"dtype", "Float"}, {"shape", param.tensor.sizes().vec()}};
  }
  object["parameters"] = parameters;
  object["hash"] = T5Encoder(model).digest();
  object["tensors"] = tensors;
}

void fill_table(const fs::path& folder, Json& object) {
  const TokenTable table = load_token_table(folder);
  object["vocabulary"] = table.weight.size(0);
  object["width"] = table.weight.size(1);
  object["made"] = table.made;
}

}  // namespace

Json describe_folder(const InspectOptions& options) {
  const fs::path folder = options.path;
  const auto has = [&](const char* name) { return fs::exists(folder / name); };
  const auto by = [&](const char* kind, void (*fill)(const fs::path&, Json&)) {
    return described(kind, folder, [&](Json& object) { fill(folder, object); });
  };
  if (has("model.json")) return by("model", fill_model);
  if (has("checkpoints") && has("config.yaml")) return by("run", fill_run);
  if (has("state.json") || has("optimizer.safetensors")) return by("checkpoint", fill_checkpoint);
  if (has("table.json") || has("table.safetensors")) return by("table", fill_table);
  if (has("config.json")) return by("encoder", fill_encoder);
  if (has("spiece.model")) return describe_tokenizer(folder);
  usage_error(
      options.path,
      ": nothing that is known here: expected a run, a checkpoint, a model directory, an encoder (a Hugging "
      "Face folder of a T5), a token table or a tokenizer");
}

}  // namespace elf::app
