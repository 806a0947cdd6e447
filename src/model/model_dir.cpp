#include "elf/model/model_dir.h"

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "elf/base/manifest.h"
#include "elf/tensor/safetensors.h"

namespace elf {
namespace fs = std::filesystem;
namespace {

struct Place {
  fs::path config_folder;  // holds config.yaml, tokenizer/, latents/
  fs::path weights_file;
};

// The newest whole checkpoint of a run, by its pointer or, failing that, by number.
fs::path checkpoint_of_run(const fs::path& run) {
  const fs::path folder = run / "checkpoints";
  std::error_code error;
  if (fs::exists(folder / "latest", error)) {
    std::string name = read_file(folder / "latest");
    while (!name.empty() && name.back() == '\n') name.pop_back();
    const std::string problem = manifest_problem(folder / name);
    if (problem.empty()) return folder / name;
    usage_error((folder / name).string(), " (named by `latest`) cannot be used: ", problem,
                "; name another checkpoint of ", folder.string());
  }
  std::string candidates;
  for (const auto& entry : fs::directory_iterator(folder, error))
    candidates += " " + entry.path().filename().string();
  usage_error(
      run.string(), ": the run has no checkpoints/latest",
      candidates.empty() ? "; it has saved nothing yet" : "; name one of its checkpoints:" + candidates);
}

Place find_model(const fs::path& path, Weights weights) {
  const char* file = weights == Weights::kEma ? "ema.safetensors" : "model.safetensors";
  std::error_code error;
  if (!fs::exists(path, error)) usage_error(path.string(), ": no such run, checkpoint or model directory");
  if (!fs::is_directory(path, error))
    usage_error(path.string(), ": is a file; give a run folder, a checkpoint folder or a model directory");
  if (fs::exists(path / "config.yaml", error)) {
    if (fs::exists(path / "checkpoints", error)) return {path, checkpoint_of_run(path) / file};
    if (fs::exists(path / "model.safetensors", error)) {
      if (const std::string problem = manifest_problem(path); !problem.empty())
        usage_error(path.string(), ": the model directory cannot be used: ", problem);
      return {path, path / "model.safetensors"};
    }
    usage_error(path.string(), ": holds config.yaml but neither checkpoints/ nor model.safetensors");
  }
  if (fs::exists(path / "state.json", error) || fs::exists(path / kManifestName, error)) {
    if (const std::string problem = manifest_problem(path); !problem.empty())
      usage_error(path.string(), ": the checkpoint cannot be used: ", problem);
    const fs::path run = fs::absolute(path).lexically_normal().parent_path().parent_path();
    if (!fs::exists(run / "config.yaml", error))
      usage_error(path.string(), ": the run's config.yaml is not in ", run.string());
    return {run, path / file};
  }
  std::string candidates;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (fs::exists(entry.path() / "config.yaml", error)) candidates += " " + entry.path().filename().string();
  }
  usage_error(path.string(), ": is no run, checkpoint or model directory (no config.yaml)",
              candidates.empty() ? "" : "; it holds these:" + candidates);
}

void copy_part(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (fs::exists(to, error) && fs::equivalent(from, to, error)) return;
  fs::remove_all(to, error);
  fs::copy(from, to, fs::copy_options::recursive, error);
  if (error) environment_error(to.string(), ": cannot be copied from ", from.string(), ": ", error.message());
}

}  // namespace

NetworkTraits Model::network_traits(const RunConfig& config) {
  return {.self_cond = config.flow.self_cond_prob > 0,
          .cfg_tokens = config.model.num_self_cond_cfg_tokens > 0,
          .dropout = config.model.dropout > 0,
          .vocab_size = config.model.vocab_size};
}

Model load_model(const fs::path& path, at::Device device, Weights weights) {
  const Place place = find_model(path, weights);
  Model model;
  model.config = load_run_config(place.config_folder / "config.yaml");
  model.tokenizer =
      std::make_shared<SentencePieceTokenizer>(SentencePieceTokenizer::load(model.config.data.tokenizer));
  model.codec = make_latent_codec(model.config.latents, device);
  require_tokenizer(*model.codec, model.config.latents.path, model.tokenizer->hash(),
                    model.tokenizer->size());
  if (model.codec->dim() != model.config.model.latent_dim) {
    usage_error(model.config.latents.path, ": its width is ", model.codec->dim(),
                ", but model.latent_dim of ", (place.config_folder / "config.yaml").string(), " is ",
                model.config.model.latent_dim);
  }
  model.network = std::make_unique<ElfNet>(model.config.model, device);
  model.network->load(read_safetensors(place.weights_file));
  model.weights_file = place.weights_file;
  model.weights_digest = digest_of_file(place.weights_file);
  model.weights_kind = weights == Weights::kEma ? "ema" : "raw";
  return model;
}

TensorMap load_weights(const fs::path& path, Weights weights) {
  return read_safetensors(find_model(path, weights).weights_file);
}

void write_model_parts(const fs::path& folder, const RunConfig& config) {
  fs::create_directories(folder);
  RunConfig stored = config;
  const auto keep = [&](std::string& source, const std::string& name) {
    if (source.empty()) return;
    const fs::path copy =
        folder /
        (fs::is_directory(source) ? fs::path(name) : fs::path(name + fs::path(source).extension().string()));
    copy_part(source, copy);
    source = copy.filename().string();
  };
  keep(stored.data.tokenizer, "tokenizer");
  keep(stored.latents.path, "latents");
  keep(stored.latents.statistics, "statistics");
  write_file(folder / "config.yaml", to_yaml(stored));
}

}  // namespace elf
