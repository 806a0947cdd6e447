// elf-inspect on folders: runs, checkpoints, model directories, encoders, scorers, tables, tokenizers.
#include <algorithm>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/base/manifest.h"
#include "elf/config/run_config.h"
#include "elf/model/gpt2.h"
#include "elf/model/model_dir.h"
#include "elf/model/t5.h"
#include "elf/model/token_table.h"
#include "elf/model/weight_map.h"
#include "elf/text/gpt2_tokenizer.h"
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
  Json object = parse_json<Json>(read_file(path));
  if (!object.is_object()) usage_error(path.string(), ": is no JSON object");
  return object;
}

// By the model_type of its config.json.
bool is_gpt2(const fs::path& folder) {
  const Json config = parse_json<Json>(read_file(folder / "config.json"));
  return text_in(config, "model_type") == "gpt2";
}

bool has_gpt2_tokenizer(const fs::path& folder) {
  return fs::exists(folder / Gpt2Tokenizer::kVocabularyFile) &&
         fs::exists(folder / Gpt2Tokenizer::kMergesFile);
}

// Runs in a folder of several: the rounds of a distillation, the arms of a study.
std::string runs_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (fs::exists(entry.path() / "config.yaml", error)) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += " " + name;
  return text;
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
  const std::string name = latest_checkpoint(run);
  std::error_code error;
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

void fill_gpt2(const fs::path& folder, Json& object) {
  object["files"] = gpt2_files(folder);
  const Gpt2 model = Gpt2::load(folder, at::kCPU);
  const Gpt2Config& config = model.config();
  object["vocabulary"] = config.vocab_size;
  object["max_length"] = config.positions;
  object["d_model"] = config.width;
  object["layers"] = config.layers;
  object["heads"] = config.heads;
  object["has_tokenizer"] = has_gpt2_tokenizer(folder);
  if (object["has_tokenizer"]) object["tokenizer_hash"] = Gpt2Tokenizer::load(folder).hash();
  object["hash"] = model.digest();
  add_tensors(model.stored(), object);
}

void fill_gpt2_tokenizer(const fs::path& folder, Json& object) {
  const Gpt2Tokenizer tokenizer = Gpt2Tokenizer::load(folder);
  object["model_type"] = "gpt2";
  object["vocabulary"] = tokenizer.size();
  object["eos_id"] = tokenizer.end_of_text();
  object["tokenizer_hash"] = tokenizer.hash();
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
  if (has("config.json")) return is_gpt2(folder) ? by("gpt2", fill_gpt2) : by("encoder", fill_encoder);
  if (has("spiece.model")) return describe_tokenizer(folder);
  if (has_gpt2_tokenizer(folder)) return by("tokenizer", fill_gpt2_tokenizer);
  const std::string runs = runs_in(folder);
  usage_error(options.path,
              ": nothing that is known here: expected a run, a checkpoint, a model directory, an encoder or "
              "scorer (a "
              "Hugging Face folder of a T5 or GPT-2), a token table or a tokenizer",
              runs.empty() ? "" : "; it holds these:" + runs);
}

}  // namespace elf::app
