// elf-sample: a trained model in, texts out.
#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "cli.h"
#include "elf/app/tools.h"
#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/base/outputs.h"
#include "elf/base/progress.h"
#include "elf/config/enum_names.h"
#include "elf/model/model_dir.h"
#include "elf/sample/generate.h"
#include "elf/tensor/random.h"
#include "elf/version.h"
#include "sample_io.h"

namespace elf::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples =
    "  elf-sample --model runs/verses --num-samples 20\n"
    "  elf-sample --model runs/verses --num-samples 1000 --seed 1 --sampler ode --steps 64 --sc-cfg 2 "
    "--output samples.jsonl\n"
    "  elf-sample --model runs/de-en --input test.de --cfg 2 --output test.out\n"
    "  echo 'Guten Morgen' | elf-sample --model runs/de-en --input -\n"
    "  elf-sample --model runs/verses --num-samples 1 --trajectory steps.jsonl\n"
    "Settings that are not given come from the model's own `sampling:` section.\n"
    "Beside --output F stands F.json: what the samples were made with.\n";

struct Options {
  CommonOptions common;
  std::string model, input, field, output, format, trajectory, weights = "ema";
  std::optional<int64_t> num_samples, steps, batch_size;
  std::optional<uint64_t> seed;
  std::optional<double> gamma, sc_cfg, cfg;
  std::string sampler, time_schedule;
  int64_t first_index = 0;
  bool clean_up = false;
};

void add_options(CLI::App& app, Options& o) {
  app.add_option("--model", o.model, "Run folder, checkpoint folder or model directory")->required();
  app.add_option("--num-samples", o.num_samples, "Unconditional models: how many samples");
  app.add_option("--input", o.input,
                 "Conditional models: one output for each line of this text or record of this .jsonl; - = "
                 "standard input");
  app.add_option("--field", o.field, "The input is JSONL with its text under this key (.jsonl files: text)");
  app.add_option("--first-index", o.first_index,
                 "Number of the first sample: shares of one set can be made apart");
  app.add_option("--seed", o.seed, "Sample i depends on model, settings, seed and i only");
  app.add_option("--steps", o.steps, "Sampling steps");
  app.add_option("--sampler", o.sampler, "sde or ode");
  app.add_option("--gamma", o.gamma, "Noise of the SDE; 0 = the ODE");
  app.add_option("--sc-cfg", o.sc_cfg, "Scale of self-condition guidance (w)");
  app.add_option("--cfg", o.cfg, "Scale of guidance on the input; 1 = none");
  app.add_option("--time-schedule", o.time_schedule, "logit-normal, uniform or logit-normal-quantiles");
  app.add_option("--batch-size", o.batch_size, "Rows at a time; the result does not depend on it");
  app.add_option("--weights", o.weights, "ema or raw")
      ->check(CLI::IsMember({"ema", "raw"}))
      ->capture_default_str();
  app.add_flag("--clean-up", o.clean_up,
               "Remove blanks before . ? ! , and in contractions, as the published evaluation does");
  app.add_option("--format", o.format,
                 "text (one sample a line) or jsonl; without it by the name of --output")
      ->check(CLI::IsMember({"text", "jsonl"}));
  app.add_option("--output", o.output, "File to write; without it standard output");
  app.add_option("--trajectory", o.trajectory, "JSONL file: the decoded text of every sample at every step");
  add_common_options(app, o.common);
  with_examples(app, kExamples);
}

SamplingConfig sampling_config(const SamplingConfig& of_model, const Options& o) {
  SamplingConfig config = of_model;
  if (!o.sampler.empty()) config.sampler = parse_enum<SamplerKind>(o.sampler, "--sampler");
  if (!o.time_schedule.empty())
    config.time_schedule = parse_enum<TimeGrid>(o.time_schedule, "--time-schedule");
  config.steps = o.steps.value_or(config.steps);
  config.batch_size = o.batch_size.value_or(config.batch_size);
  config.seed = o.seed.value_or(config.seed);
  config.gamma = o.gamma.value_or(config.gamma);
  config.self_cond_cfg = o.sc_cfg.value_or(config.self_cond_cfg);
  config.cfg = o.cfg.value_or(config.cfg);
  return config;
}

// One sample to make.
struct Job {
  int64_t index = 0;
  SampleInput input;
  TokenIds condition;
};

std::vector<Job> plan_jobs(const Options& o, const Model& model, int64_t& truncated) {
  const int64_t longest = model.config.data.max_input_length;
  std::vector<Job> jobs;
  if (o.num_samples) {
    if (longest > 0)
      usage_error(o.model,
                  " was trained on pairs: it answers inputs. Give --input FILE instead of --num-samples");
    for (int64_t i = 0; i < *o.num_samples; ++i) jobs.push_back({o.first_index + i, {}, {}});
    return jobs;
  }
  if (longest == 0)
    usage_error(o.model, " was trained on texts without inputs. Give --num-samples N instead of --input");
  SampleInputs read = read_sample_inputs(o.input, o.field);
  for (SampleInput& input : read.inputs) {
    const std::vector<int32_t> ids = model.tokenizer->encode(input.text);
    Job job{o.first_index + input.index, std::move(input), TokenIds(ids.begin(), ids.end())};
    if (static_cast<int64_t>(job.condition.size()) > longest) {
      job.condition.resize(static_cast<size_t>(longest));
      ++truncated;
    }
    jobs.push_back(std::move(job));
  }
  if (jobs.empty()) log_warning(o.input + ": no input, so no output");
  if (read.with_line_breaks > 0)
    log_warning(cat(read.with_line_breaks, " inputs had line breaks inside; they were read as blanks"));
  if (truncated > 0)
    log_warning(cat(truncated, " of ", jobs.size(), " inputs are longer than the model's ", longest,
                    " tokens and were cut"));
  return jobs;
}

Generator make_generator(const Model& model, const SamplingConfig& config, at::Device device) {
  const RunConfig& run = model.config;
  const GeneratorShape shape{run.data.max_length > 0 ? run.data.max_length : run.model.max_length,
                             run.model.latent_dim, run.data.max_input_length,
                             std::max<int64_t>(0, model.tokenizer->pad_id()), model.tokenizer->eos_id()};
  const SamplerModel sampler{*model.network, model.traits(), run.flow.denoiser_noise_scale, run.flow.t_eps};
  return Generator(sampler, model.codec.get(), shape, config, device);
}

// Makes the samples batch by batch and writes them in order.
class Sampling {
 public:
  Sampling(const Model& model, const SamplingConfig& config, const Options& o)
      : model_(model),
        config_(config),
        jsonl_(o.format == "jsonl" ||
               (o.format.empty() && std::filesystem::path(o.output).extension() == ".jsonl")),
        decoding_{.skip_special = true, .clean_up = o.clean_up},
        generator_(make_generator(model, config, o.common.device())),
        output_(o.output) {
    if (!o.trajectory.empty()) trajectory_ = std::make_unique<LineWriter>(o.trajectory);
  }

  void run(const std::vector<Job>& jobs) {
    Progress progress("sampling", static_cast<int64_t>(jobs.size()), "samples");
    progress.update(0);  // the rate counts from here
    const size_t batch = static_cast<size_t>(config_.batch_size);
    for (size_t first = 0; first < jobs.size(); first += batch) {
      run_batch(jobs, first, std::min(jobs.size(), first + batch));
      progress.update(static_cast<int64_t>(std::min(jobs.size(), first + batch)));
    }
    progress.finish();
    output_.finish();
    if (trajectory_) trajectory_->finish();
  }

  int64_t empty() const { return empty_; }
  const Generator& generator() const { return generator_; }

 private:
  void run_batch(const std::vector<Job>& jobs, size_t first, size_t last) {
    std::vector<int64_t> samples;
    std::vector<TokenIds> conditions;
    const bool conditional = model_.config.data.max_input_length > 0;
    for (size_t i = first; i < last; ++i) {
      samples.push_back(jobs[i].index);
      if (conditional) conditions.push_back(jobs[i].condition);
    }
    std::vector<GeneratorStep> steps;
    GeneratorObserver observer;
    if (trajectory_) observer = [&](const GeneratorStep& step) { steps.push_back(step); };
    const std::vector<TokenIds> ids = generator_.generate(samples, conditions, observer);
    for (size_t i = 0; i < ids.size(); ++i) {
      const Job& job = jobs[first + i];
      SampleRecord record{job.index,    job.input.id, text_of(ids[i]), ids[i],
                          config_.seed, conditional,  job.input.text};
      empty_ += record.text.find_first_not_of(' ') == std::string::npos;
      output_.write(jsonl_ ? jsonl_line(record) : text_line(record));
      for (const GeneratorStep& step : steps) write_step(job.index, step, step.ids[i]);
    }
    output_.flush();
  }

  void write_step(int64_t index, const GeneratorStep& step, const TokenIds& ids) {
    const Json object = {{"index", index}, {"step", step.index + 1}, {"t", step.t}, {"text", text_of(ids)}};
    trajectory_->write(object.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  std::string text_of(const TokenIds& ids) const { return model_.tokenizer->decode(ids, decoding_); }

  const Model& model_;
  SamplingConfig config_;
  bool jsonl_;
  DecodeOptions decoding_;
  Generator generator_;
  LineWriter output_;
  std::unique_ptr<LineWriter> trajectory_;
  int64_t empty_ = 0;
};

// What produced the samples: everything that the same samples need, and the counts.
Json provenance(const Options& o, const Model& model, const SamplingConfig& c, const Sampling& sampling,
                int64_t samples, int64_t truncated, double seconds) {
  const FlowConfig& flow = model.config.flow;
  return {{"tool", "elf-sample"},
          {"version", ELF_VERSION},
          {"revision", ELF_GIT_REVISION},
          {"libtorch", ELF_LIBTORCH_VERSION},
          {"model", o.model},
          {"weights", model.weights_kind},
          {"weights_file", model.weights_file.string()},
          {"weights_hash", model.weights_digest},
          {"tokenizer_hash", model.tokenizer->hash()},
          {"latents_hash", model.codec->digest()},
          {"sampler",
           {{"sampler", enum_name(c.sampler)},
            {"steps", c.steps},
            {"gamma", c.gamma},
            {"self_cond_cfg", c.self_cond_cfg},
            {"cfg", c.cfg},
            {"time_schedule", enum_name(c.time_schedule)},
            {"p_mean", c.p_mean},
            {"p_std", c.p_std},
            {"noise_scale", flow.denoiser_noise_scale},
            {"t_eps", flow.t_eps}}},
          {"seed", c.seed},
          {"first_index", o.first_index},
          {"samples", samples},
          {"input", o.input.empty() ? Json(nullptr) : Json(o.input)},
          {"truncated_inputs", truncated},
          {"n_empty", sampling.empty()},
          {"clean_up", o.clean_up},
          {"precision", "float32"},
          {"device", o.common.device().str()},
          {"network_rows", sampling.generator().rows()},
          {"seconds", seconds}};
}

void check(const Options& o) {
  if (o.num_samples.has_value() == !o.input.empty())
    usage_error("give one of --num-samples N and --input FILE");
  refuse_overwriting(o.output, {o.input, o.trajectory});
  refuse_overwriting(o.trajectory, {o.input});
  if (!o.trajectory.empty() && std::filesystem::path(o.trajectory).extension() != ".jsonl") {
    usage_error("--trajectory ", o.trajectory, ": expected a name that ends in .jsonl");
  }
  const auto at_least = [](const char* name, const std::optional<int64_t>& value, int64_t least) {
    if (value && *value < least) usage_error(name, ": found ", *value, ", expected an integer from ", least);
  };
  at_least("--num-samples", o.num_samples, 1);
  at_least("--steps", o.steps, 1);
  at_least("--batch-size", o.batch_size, 1);
  at_least("--first-index", o.first_index, 0);
  if (o.gamma && *o.gamma < 0) usage_error("--gamma: found ", *o.gamma, ", expected a number from 0");
  for (const auto& [name, value] :
       {std::pair{"--gamma", o.gamma}, {"--sc-cfg", o.sc_cfg}, {"--cfg", o.cfg}}) {
    if (value && !std::isfinite(*value)) usage_error(name, ": found ", *value, ", expected a finite number");
  }
}

void warn_of_unused(const Options& o, const Model& model) {
  if (o.sc_cfg && !model.traits().self_cond && !model.traits().cfg_tokens) {
    log_warning("--sc-cfg changes nothing: the model has no self-conditioning");
  }
  if (o.cfg && model.config.data.max_input_length == 0)
    log_warning("--cfg changes nothing: the model takes no input");
}

void sample_from(const Options& o) {
  check(o);
  const auto start = std::chrono::steady_clock::now();
  const Model model =
      load_model(o.model, o.common.device(), o.weights == "ema" ? Weights::kEma : Weights::kRaw);
  const SamplingConfig config = sampling_config(model.config.sampling, o);
  warn_of_unused(o, model);
  int64_t truncated = 0;
  const std::vector<Job> jobs = plan_jobs(o, model, truncated);
  const auto count = static_cast<int64_t>(jobs.size());

  Sampling sampling(model, config, o);
  sampling.run(jobs);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!o.output.empty()) {
    write_file(o.output + ".json",
               provenance(o, model, config, sampling, count, truncated, seconds).dump(2) + "\n");
  }
  log_info(cat(count, " samples (", sampling.empty(), " empty) in ", duration_text(seconds), ", ",
               enum_name(config.sampler), " ", config.steps, " steps, w ", config.self_cond_cfg, ", seed ",
               config.seed, ", weights ", model.weights_kind));
  if (count > 0 && sampling.empty() * 5 > count) {
    log_warning(cat(sampling.empty(), " of ", count,
                    " samples are empty: the model ends the text at once. Too little training, or padding ",
                    "dominates what it learned (flow.pad_token)"));
  }
}

}  // namespace

int sample(int argc, char** argv) {
  CLI::App app("Texts from a trained model: from noise, or one for each line of input.", "elf-sample");
  Options options;
  add_options(app, options);
  return run(app, options.common, argc, argv, [&] { sample_from(options); });
}

}  // namespace elf::app
