// elf-convert: weights of the published implementation in, model directories and published checkpoints out.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>

#include "cli.h"
#include "elf/app/tools.h"
#include "elf/base/atomic_folder.h"
#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "elf/base/outputs.h"
#include "elf/config/published_config.h"
#include "elf/model/model_dir.h"
#include "elf/model/published_weights.h"
#include "elf/model/weight_map.h"

namespace elf::app {
namespace {

namespace fs = std::filesystem;

// What each subcommand does, run after log level and threads are set.
using Commands = std::map<std::string, std::function<void()>>;

constexpr const char* kExamples =
    "  elf-convert import elf-b.pt --config elf-b-owt --tokenizer t5-small/spiece.model --encoder t5-small "
    "\\\n"
    "      --out models/elf-b\n"
    "  elf-convert import weights.safetensors --config train_config.yml --out models/mine\n"
    "  elf-convert export runs/verses --to model-dir --precision bf16 --out models/verses\n"
    "  elf-convert export models/verses --to elf-pytorch --out verses.pt\n";

// What import and export share.
struct Parts {
  std::string tokenizer, encoder, table, weights = "both", precision = "float32", out;
  std::vector<std::string> assignments;
  bool overwrite = false;
};

void add_parts(Command& command, Parts& parts) {
  command.add_option("--tokenizer", parts.tokenizer,
                     "SentencePiece model, or its folder, to put into the directory");
  command.add_option("--encoder", parts.encoder, "Hugging Face folder of the T5 to put into the directory");
  command.add_option("--table", parts.table, "Folder of a token table, in place of an encoder");
  command.add_option("--weights", parts.weights, "ema, raw or both")
      ->one_of({"ema", "raw", "both"})
      ->capture_default_str();
  command
      .add_option("--precision", parts.precision, "How the directory stores weights: float32, bf16 or int8")
      ->capture_default_str();
  command.add_option("--set", parts.assignments, "SECTION.KEY=VALUE of the configuration; may be repeated")
      ->allow_extra_args(false);
  command.add_flag("--overwrite", parts.overwrite, "Replace a directory that holds something else, too");
  command.add_option("--out", parts.out, "Directory or file to write")->required();
}

// The folder that is replaced holds nothing that is read.
void refuse_inputs_as_output(const Parts& parts, const std::string& origin) {
  refuse_overwriting(parts.out, {origin, parts.tokenizer, parts.encoder, parts.table});
}

void choose_weights(StoredModel& model, const std::string& which, const std::string& origin) {
  if (which != "both" && (which == "ema" ? model.ema : model.raw).empty())
    usage_error("--weights ", which, ": ", origin, " holds no such weights");
  if (which == "ema") model.raw.clear();
  if (which == "raw") model.ema.clear();
}

void set_parts(RunConfig& config, const Parts& parts) {
  if (!parts.encoder.empty() && !parts.table.empty()) usage_error("give one of --encoder and --table");
  const auto absolute = [](const std::string& path) {
    return fs::absolute(path).lexically_normal().string();
  };
  if (!parts.tokenizer.empty()) config.data.tokenizer = absolute(parts.tokenizer);
  const bool other = !parts.encoder.empty() || !parts.table.empty();
  if (other && config.latents.source == LatentSource::kLearned)
    usage_error(
        "the latents are a part of this network (latents.source learned): leave --encoder and --table out");
  if (!parts.encoder.empty())
    config.latents = {.source = LatentSource::kT5,
                      .path = absolute(parts.encoder),
                      .mean = config.latents.mean,
                      .std = config.latents.std};
  if (!parts.table.empty())
    config.latents = {.source = LatentSource::kTable, .path = absolute(parts.table), .mean = 0, .std = 1};
}

void write_directory(const StoredModel& model, const Parts& parts, const std::string& source) {
  ModelDirOptions options;
  options.precision = parse_precision(parts.precision, "--precision");
  // What the same command wrote is replaced, anything else is left alone.
  const bool own =
      holds_only(parts.out, {"config.yaml", "model.json", "model.safetensors", "raw.safetensors",
                             "manifest.json", "tokenizer", "latents", "statistics.json", "decoder"});
  AtomicFolder folder(parts.out, parts.overwrite || own);
  options.source = source;
  write_model_dir(folder.temporary(), model, options);
  folder.commit();
  const RunConfig& config = model.config;
  std::cout << parts.out << ": " << parameter_count(config.model) << " parameters, "
            << (model.ema.empty()   ? "raw"
                : model.raw.empty() ? "averaged"
                                    : "averaged and raw")
            << " weights, " << parts.precision << (config.data.tokenizer.empty() ? ", no tokenizer" : "")
            << (has_latents(config.latents) ? "" : ", no encoder") << "\n";
  if (config.data.tokenizer.empty() || !has_latents(config.latents))
    log_warning(cat(parts.out,
                    " can run the network, but not make texts: give --tokenizer, and --encoder or --table"));
}

// ---------------------------------------------------------------------------------------------- import

struct ImportOptions {
  std::string from = "elf-pytorch", file, config;
  Parts parts;
};

// The configuration, of those that --config gives, whose sizes are those of the weights.
RunConfig fitting_config(const ImportOptions& options, const TensorMap& weights) {
  const std::vector<std::string>& set = options.parts.assignments;
  std::vector<RunConfig> configs;
  if (fs::exists(options.config)) {
    configs = load_published_config(options.config, set);
  } else if (options.config.find('.') == std::string::npos && options.config.find('/') == std::string::npos) {
    configs = {published_preset(options.config, set)};
  } else {
    usage_error("--config ", options.config, ": no such file, nor the name of a published preset");
  }
  // Of several networks in one file (the sizes differ), the one that needs no correction; else the first.
  RunConfig chosen = configs.front();
  for (const RunConfig& each : configs) {
    const ModelConfig found = dimensions_of(weights, each.model, options.file);
    if (found == each.model) {
      chosen = each;
      break;
    }
  }
  chosen.model = dimensions_of(weights, chosen.model, options.file);
  if (chosen.model.max_length == 0) chosen.model.max_length = chosen.data.max_length;
  if (chosen.data.max_length == 0) chosen.data.max_length = chosen.model.max_length;
  if (chosen.model.max_length == 0) {
    usage_error(options.config, ": the longest sequence is not in the weights: --set model.max_length=N");
  }
  return chosen;
}

// A configuration that serves for its sizes may name files of another machine.
void drop_missing(RunConfig& config) {
  for (auto [key, path] : {std::pair{"data.tokenizer", &config.data.tokenizer},
                           {"latents.path", &config.latents.path},
                           {"latents.statistics", &config.latents.statistics},
                           {"latents.decoder", &config.latents.decoder}}) {
    if (path->empty() || fs::exists(*path)) continue;
    log_info(cat(key, " ", *path, " of the configuration is not there and is left out"));
    path->clear();
  }
}

void run_import(const ImportOptions& options) {
  const std::string origin = options.file;
  refuse_inputs_as_output(options.parts, origin);
  PublishedWeights read = read_published_weights(options.file);
  if (!read.skipped.empty()) log_warning(cat(origin, ": left out, not run: ", read.skipped));
  StoredModel model;
  model.ema = std::move(read.ema);
  model.raw = std::move(read.raw);
  model.step = read.step;
  choose_weights(model, options.parts.weights, origin);
  model.config = fitting_config(options, model.raw.empty() ? model.ema : model.raw);
  drop_missing(model.config);
  set_parts(model.config, options.parts);
  validate(model.config);
  write_directory(model, options.parts,
                  cat(fs::path(origin).filename().string(), " ", digest_of_file(origin)));
}

// ---------------------------------------------------------------------------------------------- export

struct ExportOptions {
  std::string model, to = "model-dir";
  Parts parts;
};

// The published code would load the weights of some variants and give nonsense.
void refuse_variants(const RunConfig& config, const std::string& origin) {
  const auto refuse = [&](const std::string& what) {
    usage_error(origin, ": the published code has no ", what, "; export it --to model-dir");
  };
  if (config.model.conditioning != Conditioning::kInContext) refuse("adaLN-Zero (model.conditioning)");
  if (config.model.prediction != Prediction::kX) refuse("prediction but that of x (model.prediction)");
  if (!config.latents.decoder.empty()) refuse("separate decoder (latents.decoder)");
  if (config.latents.source == LatentSource::kLearned) refuse("learned latents (latents.source)");
}

void run_export(const ExportOptions& options) {
  refuse_inputs_as_output(options.parts, options.model);
  StoredModel model = read_stored_model(options.model);
  choose_weights(model, options.parts.weights, options.model);
  if (options.to == "elf-pytorch") {
    if (options.parts.precision != "float32")
      usage_error("--precision ", options.parts.precision, ": published checkpoints are float32");
    refuse_variants(model.config, options.model);
    PublishedWeights weights{model.raw, model.ema, model.step, 0, ""};
    for (const TensorMap* each : {&model.raw, &model.ema}) {
      if (!each->empty()) require_weights(model.config.model, *each, options.model);
    }
    write_published_weights(options.parts.out, weights);
    std::cout << options.parts.out << ": " << parameter_count(model.config.model) << " parameters, step "
              << std::max<int64_t>(0, model.step) << "\n";
    return;
  }
  if (!options.parts.assignments.empty()) {
    const std::string yaml = to_yaml(model.config);
    model.config = parse_run_config(yaml, options.model, fs::current_path(), options.parts.assignments);
  }
  set_parts(model.config, options.parts);
  write_directory(model, options.parts, fs::path(options.model).filename().string());
}

void add_import_command(Command& app, Commands& commands) {
  auto options = std::make_shared<ImportOptions>();
  Command& command = *app.add_subcommand("import", "A model directory from published weights");
  command
      .add_option("weights-file", options->file,
                  "Checkpoint of the published code (.pt), a state dict, or .safetensors")
      ->required();
  command.add_option("--from", options->from, "What wrote it")
      ->one_of({"elf-pytorch"})
      ->capture_default_str();
  command
      .add_option(
          "--config", options->config,
          "What the tensors do not tell: a configuration of ours or of the published code (YAML), the "
          "sizes (JSON), or the name of a published one: elf-b-owt, elf-m-owt, elf-l-owt, "
          "elf-b-wmt14-de-en, elf-b-xsum")
      ->required();
  add_parts(command, options->parts);
  with_examples(command,
                "  elf-convert import elf_b_owt.pt --config elf-b-owt --tokenizer t5-small/spiece.model "
                "--encoder t5-small --out models/elf-b\n");
  commands["import"] = [options] { run_import(*options); };
}

void add_export_command(Command& app, Commands& commands) {
  auto options = std::make_shared<ExportOptions>();
  Command& command = *app.add_subcommand("export", "A model directory or a published checkpoint from a run");
  command.add_option("model", options->model, "Run folder, checkpoint folder or model directory")->required();
  command.add_option("--to", options->to, "model-dir, or elf-pytorch: a file for torch.load")
      ->one_of({"model-dir", "elf-pytorch"})
      ->capture_default_str();
  add_parts(command, options->parts);
  with_examples(command,
                "  elf-convert export runs/verses --out models/verses\n"
                "  elf-convert export runs/owt --to elf-pytorch --out elf_b.pt\n");
  commands["export"] = [options] { run_export(*options); };
}

}  // namespace

int convert(int argc, char** argv) {
  Command app("Published weights to model directories, and back.", "elf-convert");
  CommonOptions options;
  Commands commands;
  add_common_options(app, options);
  add_import_command(app, commands);
  add_export_command(app, commands);
  app.require_subcommand(1);
  with_examples(app, kExamples);
  return run(app, options, argc, argv, [&] { commands.at(app.parsed_subcommand())(); });
}

}  // namespace elf::app
