#include "elf/model/model_dir.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/base/manifest.h"
#include "elf/model/t5.h"
#include "elf/model/weight_map.h"
#include "elf/tensor/safetensors.h"
#include "elf/version.h"

namespace elf {
namespace fs = std::filesystem;
using json = nlohmann::json;
namespace {

constexpr const char* kModelFacts = "model.json";
constexpr const char* kModelFormat = "elf-model";
constexpr int64_t kModelVersion = 1;

struct Place {
  fs::path config_folder;  // holds config.yaml, tokenizer/, latents/
  fs::path ema, raw;       // files of weights; empty where there is none
  fs::path state;          // state.json of a checkpoint, model.json of a model directory
};

// The wanted folders in a folder, by name, a blank before each.
std::string names_of(const fs::path& folder, bool (*wanted)(const fs::directory_entry&)) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory(error) && wanted(entry)) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  std::string all;
  for (const std::string& name : names) all += " " + name;
  return all;
}

// The newest whole checkpoint of a run, by its pointer or, failing that, by number.
fs::path checkpoint_of_run(const fs::path& run) {
  const fs::path folder = run / "checkpoints";
  if (const std::string name = latest_checkpoint(run); !name.empty()) {
    const std::string problem = manifest_problem(folder / name);
    if (problem.empty()) return folder / name;
    usage_error((folder / name).string(), " (named by `latest`) cannot be used: ", problem,
                "; name another checkpoint of ", folder.string());
  }
  const std::string candidates =
      names_of(folder, [](const fs::directory_entry& entry) { return entry.path().extension() != ".tmp"; });
  usage_error(
      run.string(), ": the run has no checkpoints/latest",
      candidates.empty() ? "; it has saved nothing yet" : "; name one of its checkpoints:" + candidates);
}

Place place_of_checkpoint(const fs::path& config_folder, const fs::path& checkpoint) {
  return {config_folder, checkpoint / "ema.safetensors", checkpoint / "model.safetensors",
          checkpoint / "state.json"};
}

json read_object(const fs::path& path) {
  json object = parse_json(read_file(path));
  if (!object.is_object()) usage_error(path.string(), ": is no JSON object");
  return object;
}

// model.json, its format and version checked.
json read_model_facts(const fs::path& folder) {
  const fs::path path = folder / kModelFacts;
  const json facts = read_object(path);
  const json format = facts.value("format", json()), version = facts.value("format_version", json());
  if (format != kModelFormat)
    usage_error(path.string(), ": format ", format.dump(), ", expected \"", kModelFormat, "\"");
  if (!version.is_number_integer() || version.get<int64_t>() < 1 || version.get<int64_t>() > kModelVersion) {
    usage_error(path.string(), ": format_version ", version.dump(), ", this program reads 1 to ",
                kModelVersion, "; it may have been made by a later version of elf");
  }
  return facts;
}

Place place_of_model_dir(const fs::path& folder) {
  if (const std::string problem = manifest_problem(folder); !problem.empty())
    usage_error(folder.string(), ": the model directory cannot be used: ", problem);
  const json facts = read_model_facts(folder);
  const json kind = facts.value("weights", json());
  if (kind != "ema" && kind != "raw") {
    usage_error((folder / kModelFacts).string(), ": weights is ", kind.dump(),
                ", expected \"ema\" or \"raw\"");
  }
  Place place{folder, {}, {}, folder / kModelFacts};
  (kind == "ema" ? place.ema : place.raw) = folder / "model.safetensors";
  std::error_code error;
  if (kind == "ema" && fs::exists(folder / "raw.safetensors", error)) place.raw = folder / "raw.safetensors";
  return place;
}

Place find_model(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) usage_error(path.string(), ": no such run, checkpoint or model directory");
  if (!fs::is_directory(path, error))
    usage_error(path.string(), ": is a file; give a run folder, a checkpoint folder or a model directory");
  if (fs::exists(path / kModelFacts, error)) return place_of_model_dir(path);
  if (fs::exists(path / "config.yaml", error)) {
    if (fs::exists(path / "checkpoints", error)) return place_of_checkpoint(path, checkpoint_of_run(path));
    usage_error(path.string(), ": holds config.yaml but neither checkpoints/ nor ", kModelFacts);
  }
  if (fs::exists(path / "state.json", error) || fs::exists(path / kManifestName, error)) {
    if (const std::string problem = manifest_problem(path); !problem.empty())
      usage_error(path.string(), ": the checkpoint cannot be used: ", problem);
    const fs::path run = fs::absolute(path).lexically_normal().parent_path().parent_path();
    if (!fs::exists(run / "config.yaml", error))
      usage_error(path.string(), ": the run's config.yaml is not in ", run.string());
    return place_of_checkpoint(run, path);
  }
  const std::string candidates = names_of(path, [](const fs::directory_entry& entry) {
    std::error_code ignored;
    return fs::exists(entry.path() / "config.yaml", ignored);
  });
  usage_error(path.string(), ": is no run, checkpoint or model directory (no config.yaml)",
              candidates.empty() ? "" : "; it holds these:" + candidates);
}

// The averages where they are asked for and there are any.
fs::path wanted_file(const Place& place, const fs::path& path, Weights weights) {
  const fs::path& file = weights == Weights::kEma && !place.ema.empty() ? place.ema : place.raw;
  if (file.empty())
    usage_error(path.string(), ": holds averaged weights only; ask for ema, or make it again with both");
  return file;
}

TensorMap read_weights(const fs::path& file) {
  return file.empty() ? TensorMap{} : unpack_weights(read_safetensors(file), file.string());
}

// Throws Error (usage) naming both unless tokenizer, latent source and network are of one size.
void require_fit(const RunConfig& config, const SentencePieceTokenizer& tokenizer, const LatentCodec& codec) {
  require_tokenizer(codec, config.latents.path, tokenizer.hash(), tokenizer.size());
  if (codec.dim() != config.model.latent_dim) {
    usage_error(config.latents.path, ": its width is ", codec.dim(), ", but the network's latent_dim is ",
                config.model.latent_dim);
  }
  if (tokenizer.size() > config.model.vocab_size) {
    usage_error(config.data.tokenizer, ": has ", tokenizer.size(), " ids, but the network's vocab_size is ",
                config.model.vocab_size);
  }
}

// Copies a file, or a folder; of the folder of a T5 only what is needed of it. The copy is on disk before
// config.yaml, written last, says that the parts are there.
void copy_part(const fs::path& from, const fs::path& to, bool t5) {
  std::error_code error;
  if (fs::exists(to, error) && fs::equivalent(from, to, error)) return;
  fs::remove_all(to, error);
  if (t5) {
    make_folder(to);
    for (const std::string& file : t5_files(from)) {
      if (!error) fs::copy_file(from / file, to / file, error);
    }
  } else {
    fs::copy(from, to, fs::copy_options::recursive, error);
  }
  if (error) environment_error(to.string(), ": cannot be copied from ", from.string(), ": ", error.message());
  sync_all_to_disk(to);
}

// `folder` becomes a model directory of the decoder's averages.
void copy_decoder(const fs::path& source, const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder, error) && fs::equivalent(source, folder, error)) return;
  StoredModel decoder = read_stored_model(source);
  if (!decoder.ema.empty()) decoder.raw.clear();
  fs::remove_all(folder, error);
  make_folder(folder);
  write_model_dir(folder, decoder, {.source = source.filename().string()});
}

}  // namespace

NetworkTraits Model::network_traits(const RunConfig& config) {
  return {.self_cond = config.flow.self_cond_prob > 0,
          .cfg_tokens = config.model.num_self_cond_cfg_tokens > 0,
          .dropout = config.model.dropout > 0,
          .vocab_size = config.model.vocab_size};
}

LoadedNetwork load_network(const fs::path& path, at::Device device, Weights weights) {
  const Place place = find_model(path);
  const bool ema = weights == Weights::kEma && !place.ema.empty();
  LoadedNetwork loaded;
  loaded.weights_file = wanted_file(place, path, weights);
  loaded.weights_kind = ema ? "ema" : "raw";
  loaded.config = load_run_config(place.config_folder / "config.yaml");
  const TensorMap tensors = read_weights(loaded.weights_file);
  require_weights(loaded.config.model, tensors, loaded.weights_file.string());  // before memory is taken
  loaded.network = std::make_unique<ElfNet>(loaded.config.model, device);
  loaded.network->load(tensors, loaded.weights_file.string());
  loaded.weights_digest = digest_of_file(loaded.weights_file);
  return loaded;
}

Model load_model(const fs::path& path, at::Device device, Weights weights) {
  Model model{load_network(path, device, weights), {}, {}, {}, {}, {}};
  const DataConfig& data = model.config.data;
  const LatentsConfig& latents = model.config.latents;
  if (data.tokenizer.empty() || !has_latents(latents)) {
    usage_error(path.string(), ": has no ", data.tokenizer.empty() ? "tokenizer" : "encoder",
                "; add it by elf-convert export ", path.string(),
                " --to model-dir --tokenizer DIR --encoder DIR --out NEW");
  }
  model.tokenizer = std::make_shared<SentencePieceTokenizer>(SentencePieceTokenizer::load(data.tokenizer));
  model.codec = make_latent_codec(latents, device);
  model.codec->bind(model.network->unembedding());
  require_fit(model.config, *model.tokenizer, *model.codec);
  if (const fs::path facts = path / kModelFacts; fs::exists(facts)) {
    const json expected = read_model_facts(path).value("latents_digest", json());
    if (expected.is_string() && expected != model.codec->digest())
      usage_error(path.string(), ": its encoder gives other latents (", model.codec->digest(),
                  ") than the one it was made with (", expected.get<std::string>(), ")");
  }
  if (!latents.decoder.empty()) {
    LoadedNetwork decoder = load_decoder(model.config, *model.codec, device);
    model.two_stage = std::make_unique<TwoStageDenoiser>(*model.network, *decoder.network,
                                                         Model::network_traits(decoder.config).self_cond);
    model.decoder = std::move(decoder.network);
    model.decoder_digest = decoder.weights_digest;
  }
  return model;
}

LoadedNetwork load_decoder(const RunConfig& config, const LatentCodec& codec, at::Device device) {
  const std::string& path = config.latents.decoder;
  Model decoder = load_model(path, device);
  const ModelConfig &theirs = decoder.config.model, &ours = config.model;
  if (decoder.config.flow.decoder_prob == 0)
    usage_error("latents.decoder ", path, ": was not trained to decode (its flow.decoder_prob is 0)");
  if (theirs.latent_dim != ours.latent_dim || theirs.vocab_size != ours.vocab_size ||
      theirs.max_length < ours.max_length) {
    usage_error("latents.decoder ", path, ": reads ", theirs.max_length, " latents of width ",
                theirs.latent_dim, " for ", theirs.vocab_size, " tokens, but the model has ", ours.max_length,
                ", ", ours.latent_dim, " and ", ours.vocab_size);
  }
  if (decoder.codec->digest() != codec.digest())
    usage_error("latents.decoder ", path,
                ": was trained on other latents than the model's; train it with the same `latents:`");
  return LoadedNetwork(std::move(static_cast<LoadedNetwork&>(decoder)));
}

TensorMap load_weights(const fs::path& path, Weights weights) {
  return read_weights(wanted_file(find_model(path), path, weights));
}

std::string latest_checkpoint(const fs::path& run) {
  const fs::path pointer = run / "checkpoints" / "latest";
  std::error_code error;
  if (!fs::exists(pointer, error)) return "";
  std::string name = read_file(pointer);
  while (!name.empty() && name.back() == '\n') name.pop_back();
  if ((!name.empty() && !name.starts_with("step-")) || name.find('\0') != std::string::npos)
    usage_error(pointer.string(),
                ": is damaged, expected the name of a checkpoint, step-NUMBER; write one there");
  return name;
}

StoredModel read_stored_model(const fs::path& path) {
  const Place place = find_model(path);
  StoredModel model;
  model.config = load_run_config(place.config_folder / "config.yaml");
  model.ema = read_weights(place.ema);
  model.raw = read_weights(place.raw);
  const json step = read_object(place.state).value("step", json());
  if (step.is_number_integer()) model.step = step.get<int64_t>();
  return model;
}

void write_model_parts(const fs::path& folder, const RunConfig& config) {
  make_folder(folder);
  RunConfig stored = config;
  const auto keep = [&](std::string& source, const std::string& name, bool t5 = false) {
    if (source.empty()) return;
    const fs::path copy =
        folder /
        (fs::is_directory(source) ? fs::path(name) : fs::path(name + fs::path(source).extension().string()));
    copy_part(source, copy, t5);
    source = copy.filename().string();
  };
  if (!stored.data.tokenizer.empty()) {  // saved, not copied: a model file's extra ids lie beside it
    SentencePieceTokenizer::load(stored.data.tokenizer).save(folder / "tokenizer");
    stored.data.tokenizer = "tokenizer";
  }
  keep(stored.latents.path, "latents", config.latents.source == LatentSource::kT5);
  keep(stored.latents.statistics, "statistics");
  if (!stored.latents.decoder.empty()) {
    copy_decoder(stored.latents.decoder, folder / "decoder");
    stored.latents.decoder = "decoder";
  }
  write_file(folder / "config.yaml", to_yaml(stored));
}

namespace {

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), folder).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

void write_model_dir(const fs::path& folder, const StoredModel& model, const ModelDirOptions& options) {
  const bool ema = !model.ema.empty();
  const TensorMap& weights = ema ? model.ema : model.raw;
  for (const TensorMap* each : {&model.ema, &model.raw}) {
    if (!each->empty()) require_weights(model.config.model, *each, options.source);
  }
  RunConfig config = model.config;
  config.data.train = config.data.valid = config.latents.cache = "";
  config.train.out = TrainConfig().out;
  json facts = {{"format", kModelFormat},
                {"format_version", kModelVersion},
                {"elf_version", ELF_VERSION},
                {"weights", ema ? "ema" : "raw"},
                {"precision", precision_name(options.precision)},
                {"parameters", parameter_count(config.model)},
                {"source", options.source}};
  if (model.step >= 0) facts["step"] = model.step;
  if (!options.encoder_digest.empty()) facts["latents_digest"] = options.encoder_digest;
  if (!config.data.tokenizer.empty()) {
    const auto tokenizer = SentencePieceTokenizer::load(config.data.tokenizer);
    facts["tokenizer_hash"] = tokenizer.hash();
    if (!config.latents.path.empty()) {
      const auto codec = make_latent_codec(config.latents, at::kCPU);
      require_fit(config, tokenizer, *codec);
      facts["latents_digest"] = codec->digest();
    }
  }
  write_model_parts(folder, config);
  write_safetensors(folder / "model.safetensors", pack_weights(weights, options.precision),
                    {{"format", "pt"}});
  if (ema && !model.raw.empty())
    write_safetensors(folder / "raw.safetensors", pack_weights(model.raw, options.precision),
                      {{"format", "pt"}});
  write_file(folder / kModelFacts, facts.dump(2) + "\n");
  write_manifest(folder, files_in(folder));
}

}  // namespace elf
