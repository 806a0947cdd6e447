// elf-eval run: samples from a model and scores the samples, for a list of settings and seeds. One record for
// each setting: docs/EVALUATION.md.
#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <set>

#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/base/progress.h"
#include "elf/data/dataset.h"
#include "elf/model/model_dir.h"
#include "elf/sample/generate.h"
#include "elf/version.h"
#include "eval_model.h"
#include "eval_run_metrics.h"
#include "eval_settings.h"
#include "sample_io.h"
#include "sampler_record.h"

namespace elf::app {
namespace fs = std::filesystem;
namespace {

struct Options {
  std::string model, data, out, weights = "ema", train, reference;
  std::vector<std::string> settings, metrics;
  std::vector<uint64_t> seeds = {0};
  std::optional<int64_t> num_samples;
  ScorerOptions scorer;
  int ngram_order = 0;
  bool clean_up = false, json = false;
};

// What is to be generated: conditions with their references, or a number of samples.
struct Task {
  std::vector<TokenIds> conditions;
  std::vector<std::string> sources, references;
  int64_t count = 0;
  OrderedJson data = nullptr;  // what the record says of the dataset
};

Task pairs_task(const Options& o, const Model& model) {
  const Dataset dataset = Dataset::open(o.data);
  const DatasetInfo& info = dataset.info();
  dataset.require_tokenizer(model.tokenizer->hash(), model.tokenizer->size());
  if (!info.is_pairs())
    usage_error(o.data, ": holds documents; a model that was trained on pairs is scored on pairs");
  if (info.longest_condition > model.config.data.max_input_length) {
    usage_error(o.data, ": its longest input has ", info.longest_condition, " tokens, the model takes ",
                model.config.data.max_input_length, "; prepare the data with --max-input-length ",
                model.config.data.max_input_length);
  }
  Task task;
  task.count = o.num_samples.value_or(info.rows);
  if (task.count > info.rows)
    usage_error("--num-samples ", task.count, ": ", o.data, " has ", info.rows, " pairs only");
  for (int64_t row = 0; row < task.count; ++row) {
    const std::vector<int32_t> tokens = dataset.tokens(row);
    task.conditions.emplace_back(tokens.begin(), tokens.begin() + dataset.cond_length(row));
    task.sources.push_back(dataset.source_text(row));
    task.references.push_back(dataset.target_text(row));
  }
  task.data = {{"file", o.data},
               {"data_hash", info.data_hash},
               {"rows", info.rows},
               {"references", "raw target text of the dataset"}};
  return task;
}

Task make_task(const Options& o, const Model& model) {
  if (model.config.data.max_input_length > 0) {
    if (o.data.empty())
      usage_error(o.model, " was trained on pairs: give --data FILE.h5, the pairs to score it on");
    return pairs_task(o, model);
  }
  if (!o.data.empty())
    usage_error(o.model, " was trained on texts without inputs: give --num-samples N in the place of --data");
  if (!o.num_samples) usage_error("give --num-samples N, how many texts to sample for each setting and seed");
  Task task;
  task.count = *o.num_samples;
  return task;
}

// The samples of one setting and seed; also written to `file`, if it has a name.
Samples generate(const Options& o, const Model& model, const Task& task, const SamplingConfig& config,
                 at::Device device, const fs::path& file) {
  const RunConfig& run = model.config;
  const GeneratorShape shape{run.data.max_length > 0 ? run.data.max_length : run.model.max_length,
                             run.model.latent_dim, run.data.max_input_length,
                             std::max<int64_t>(0, model.tokenizer->pad_id()), model.tokenizer->eos_id()};
  Generator generator({model.denoiser(), model.traits(), run.flow.denoiser_noise_scale, run.flow.t_eps},
                      model.codec.get(), shape, config, device);
  Samples samples;
  std::optional<LineWriter> writer;
  if (!file.empty()) writer.emplace(file.string());
  Progress progress("sampling", task.count, "samples");
  const bool conditional = !task.conditions.empty();
  for (int64_t first = 0; first < task.count; first += config.batch_size) {
    const int64_t last = std::min(task.count, first + config.batch_size);
    std::vector<int64_t> indices;
    std::vector<TokenIds> conditions;
    for (int64_t i = first; i < last; ++i) {
      indices.push_back(i);
      if (conditional) conditions.push_back(task.conditions[static_cast<size_t>(i)]);
    }
    const std::vector<TokenIds> ids = generator.generate(indices, conditions);
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::string text =
          model.tokenizer->decode(ids[i], {.skip_special = true, .clean_up = o.clean_up});
      const auto index = static_cast<size_t>(first) + i;
      if (writer) {
        SampleRecord record;
        record.index = indices[i];
        record.text = text;
        record.ids = ids[i];
        record.seed = config.seed;
        record.conditional = conditional;
        if (conditional) record.condition = task.sources[index];
        writer->write(jsonl_line(record));
      }
      samples.texts.push_back(text);
      samples.ids.emplace_back(ids[i].begin(), ids[i].end());
    }
    progress.update(last);
  }
  progress.finish();
  if (writer) writer->finish();
  return samples;
}

OrderedJson record_of(const Options& o, const Model& model, const Task& task, const SamplingConfig& config,
                      const std::string& name, const SeedFigures& figures, const OrderedJson& protocols,
                      at::Device device) {
  std::vector<std::string> reasons = degenerate_seeds(figures, o.seeds);
  return {{"record", kRecordVersion},
          {"command", "run"},
          {"tool", cat("elf-eval ", ELF_VERSION, " (revision ", ELF_GIT_REVISION, ")")},
          {"libtorch", ELF_LIBTORCH_VERSION},
          {"name", name},
          {"model",
           {{"path", o.model},
            {"weights", model.weights_kind},
            {"weights_file", model.weights_file.string()},
            {"weights_hash", model.weights_digest},
            {"decoder_hash", model.decoder ? OrderedJson(model.decoder_digest) : OrderedJson()},
            {"tokenizer_hash", model.tokenizer->hash()},
            {"latents_hash", model.codec->digest()}}},
          {"sampler", sampler_json(config, model.config.flow)},
          {"seeds", o.seeds},
          {"samples", task.count},
          {"data", task.data},
          {"clean_up", o.clean_up},
          {"precision", "float32"},
          {"device", device.str()},
          {"figures", summary_json(figures)},
          {"protocols", protocols},
          {"degenerate", !reasons.empty()},
          {"degenerate_reasons", reasons}};
}

std::vector<NamedSetting> settings_of(const Options& o, const SamplingConfig& of_model) {
  std::vector<NamedSetting> settings;
  std::set<std::string> names;
  for (const std::string& text : o.settings.empty() ? std::vector<std::string>{""} : o.settings) {
    settings.push_back(parse_setting(text, of_model));
    if (!names.insert(settings.back().name).second)
      usage_error("--setting '", text, "' is the same as one before it (", settings.back().name, ")");
  }
  return settings;
}

void check(const Options& o) {
  if (std::set(o.seeds.begin(), o.seeds.end()).size() != o.seeds.size())
    usage_error("--seeds: a seed stands there twice; its samples would count twice");
  if (o.num_samples && *o.num_samples < 1)
    usage_error("--num-samples: found ", *o.num_samples, ", expected an integer from 1");
  if (fs::exists(o.out) && !fs::is_directory(o.out))
    usage_error("--out ", o.out, ": is a file, expected a folder");
}

void run_model(const Options& o, const CommonOptions& common) {
  check(o);
  const at::Device device = common.device();
  const Model model = load_model(o.model, device, o.weights == "ema" ? Weights::kEma : Weights::kRaw);
  const std::vector<NamedSetting> settings = settings_of(o, model.config.sampling);
  const Task task = make_task(o, model);
  if (!o.metrics.empty() && task.references.empty())
    usage_error("--metrics: ", o.metrics.front(),
                " needs references, which texts without inputs do not have");
  const RunMetrics metrics({o.scorer, o.train, o.reference, o.metrics, o.ngram_order}, device);
  if (!o.out.empty()) {
    std::error_code error;
    fs::create_directories(o.out, error);
    if (error) usage_error("--out ", o.out, ": cannot be made: ", error.message());
  }
  std::string lines;
  for (const NamedSetting& setting : settings) {
    const auto start = std::chrono::steady_clock::now();
    SeedFigures figures;
    for (const uint64_t seed : o.seeds) {
      SamplingConfig config = setting.config;
      config.seed = seed;
      const fs::path file =
          o.out.empty() ? fs::path() : fs::path(o.out) / cat(setting.name, "-seed", seed, ".jsonl");
      figures.push_back(metrics.score(generate(o, model, task, config, device, file), task.references));
    }
    OrderedJson record = record_of(o, model, task, setting.config, setting.name, figures,
                                   metrics.protocols(!task.references.empty()), device);
    record["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!o.out.empty()) {
      const fs::path file = fs::path(o.out) / (setting.name + ".json");
      write_file(file, record.dump(2) + "\n");
      log_info(cat(setting.name, ": ", file.string()));
    }
    lines +=
        o.json || o.out.empty() ? record.dump() + "\n" : cat(setting.name, "  ", summary_line(figures), "\n");
  }
  write_result("", lines);
}

}  // namespace

EvalCommand add_run_command(Command& eval, const CommonOptions& common) {
  const auto o = std::make_shared<Options>();
  Command* command = eval.add_subcommand(
      "run", "Samples from a model and scores the samples, for a list of settings and seeds");
  command->add_option("--model", o->model, "Run folder, checkpoint folder or model directory")->required();
  command->add_option("--data", o->data,
                      "Pairs to score a conditional model on (HDF5, from elf-prepare pairs)");
  command->add_option("--num-samples", o->num_samples,
                      "Samples of each seed; of --data the first so many pairs");
  command->add_option("--setting", o->settings, setting_help())->allow_extra_args(false);
  command->add_option("--seeds", o->seeds, "Each figure is a mean over these, with its standard error")
      ->delimiter(',')
      ->default_str(cat(o->seeds.front()));
  command->add_option("--scorer", o->scorer.folder, "Hugging Face folder of a GPT-2: adds Gen. PPL");
  command->add_option("--train", o->train, "Training text: adds the share of exact copies");
  command
      ->add_option(
          "--ngram-order", o->ngram_order,
          "Adds the perplexity under an n-gram model of --train of so many words, and the entropy of "
          "all words")
      ->between(1, 6);
  command->add_option("--reference", o->reference, "Texts as they should be: adds MAUVE (with --scorer)");
  command->add_option("--weights", o->weights, "ema or raw")->one_of({"ema", "raw"})->capture_default_str();
  command->add_flag("--clean-up", o->clean_up,
                    "Remove blanks before . ? ! , as the published evaluation does");
  command->add_option("--out", o->out,
                      "Folder: NAME.json, the record of a setting, and its samples; without it the "
                      "records go to stdout, one a line");
  command->add_option("--metrics", o->metrics, "Of bleu, chrf, ter, rouge, match; without it all of them")
      ->delimiter(',')
      ->one_of(run_metric_names());
  command->add_flag("--json", o->json, "Print the records, one a line");
  add_scorer_options(*command, o->scorer);
  with_examples(
      *command,
      "  elf-eval run --model runs/de-en --data test.h5 --setting cfg=1 --setting cfg=2 --seeds 0,1,2 --out "
      "scores\n"
      "  elf-eval run --model runs/verses --num-samples 1000 --setting steps=32,gamma=1.5 --setting "
      "sampler=ode,steps=64\\\n"
      "               --scorer models/gpt2-large --train verses.txt --out scores\n"
      "  elf-eval table scores/*.json");
  return {command, [o, &common] { run_model(*o, common); }};
}

}  // namespace elf::app
