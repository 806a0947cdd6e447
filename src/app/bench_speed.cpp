// elf-bench speed: seconds of training steps and of sampling, by phase, beside the machine's own rate.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "bench.h"
#include "elf/base/error.h"
#include "elf/base/phases.h"
#include "elf/bench/speed.h"
#include "elf/data/loader.h"
#include "elf/dist/launch.h"
#include "elf/dist/ranks.h"
#include "elf/model/flops.h"
#include "elf/model/model_dir.h"
#include "elf/model/weight_map.h"
#include "elf/optim/lr_schedule.h"
#include "elf/sample/decode.h"
#include "elf/sample/replayed_denoiser.h"
#include "elf/tensor/random.h"
#include "elf/train/run_plan.h"
#include "elf/train/train_step.h"
#include "elf/version.h"

namespace elf::app {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string what, config, preset = "elf-b";
  std::vector<std::string> assignments;
  int64_t batch = 8, length = 128, latent = 512, vocab = 32100, steps = 5, sampling_steps = 8, condition = 0;
  double cfg = 1.0;
  std::string precision = "float32";
  bool json = false;
};

// Sizes by --preset and its like, or a configuration with its dataset; latents of the first kind are noise.
RunPlan make_plan(const Options& o) {
  if (!o.config.empty()) return plan_run(load_run_config(o.config, o.assignments));
  RunPlan plan;
  RunConfig& config = plan.config;
  const std::string keys =
      cat("model: {preset: ", o.preset, ", latent_dim: ", o.latent, ", vocab_size: ", o.vocab,
          ", max_length: ", o.length, "}\n", "data: {max_length: ", o.length,
          ", max_input_length: ", o.condition, "}\n", "train: {global_batch_size: ", o.batch, "}\n",
          "optimizer: {lr: 0.001}\n", "sampling: {steps: ", o.sampling_steps, ", cfg: ", o.cfg, "}\n");
  config = parse_run_config(keys, "the options", ".", o.assignments);
  return plan;
}

// The same noise for every batch: no time is spent on an encoder.
class NoiseCodec final : public LatentCodec {
 public:
  NoiseCodec(int64_t rows, int64_t length, int64_t dim, int64_t vocabulary, at::Device device)
      : latents_(normal({0, Purpose::kTable}, sample_range(0, rows), {length, dim}).to(device)),
        vocabulary_(vocabulary) {}
  at::Tensor encode(const at::Tensor& ids, const at::Tensor&) override {
    return latents_.narrow(0, 0, ids.size(0));
  }
  int64_t dim() const override { return latents_.size(2); }
  int64_t vocabulary() const override { return vocabulary_; }
  std::string digest() const override { return "noise"; }

 private:
  at::Tensor latents_;
  int64_t vocabulary_;
};

Batch noise_batch(const Options& o, int64_t first, int64_t count) {
  const std::vector<int64_t> rows = sample_range(first, count);
  Batch batch;
  batch.ids =
      uniform({0, Purpose::kTable, 1}, rows, {o.length}).mul(static_cast<double>(o.vocab)).to(at::kLong);
  batch.valid_mask = at::ones({count, o.length}, at::kBool);
  batch.cond_mask = at::arange(o.length).lt(o.condition).expand({count, o.length}).contiguous();
  batch.samples = batch.rows = rows;
  return batch;
}

// Random weights; the last layer too, whose zeros would stop every gradient of the first step.
void initialise(ElfNet& network) {
  network.initialise(0);
  const at::NoGradGuard no_grad;
  for (const ParamRef& parameter : network.parameters()) {
    if (parameter.name != "final_layer.linear.weight") continue;
    const at::Tensor noise = normal({0, Purpose::kInit}, {0}, parameter.tensor.sizes())[0];
    at::Tensor(parameter.tensor).copy_(noise.mul(0.02));
  }
}

StepRows rows_of(const StepDraws& draws, const FlowConfig& flow) {
  const at::Tensor coins =
      draws.self_cond.lt(flow.self_cond_prob).logical_and(draws.decoder_row.logical_not());
  return {static_cast<double>(draws.decoder_row.numel()), draws.decoder_row.sum().item<double>(),
          coins.sum().item<double>()};
}

// Steps whose draws have as many decode rows and coins as expected of the batch, rounded: so a few steps say
// what many would, and the same of every batch size.
class TypicalSteps {
 public:
  TypicalSteps(const RunConfig& config) : config_(config) {
    const auto batch = static_cast<double>(config.train.global_batch_size);
    const double coin = config.flow.self_cond_prob * (1 - config.flow.decoder_prob);
    expected_ = {batch, std::round(batch * config.flow.decoder_prob), std::round(batch * coin)};
  }

  int64_t next() {
    constexpr int64_t kTries = 100000;
    const auto samples = sample_range(0, config_.train.global_batch_size);
    for (const int64_t last = step_ + kTries; step_ < last;) {
      const StepRows found =
          rows_of(draw_step(config_.flow, {1, 1}, config_.train.seed, ++step_, samples), config_.flow);
      if (found.decode == expected_.decode && found.coin == expected_.coin) break;
    }
    return step_;
  }

 private:
  const RunConfig& config_;
  StepRows expected_{};
  int64_t step_ = 0;
};

// Training steps as elf-train makes them: a rank's share of the rows.
class TrainingRounds {
 public:
  TrainingRounds(const Options& o, const RunPlan& plan, at::Device device, Ranks& ranks)
      : config_(plan.config),
        ranks_(ranks),
        share_(plan.config.train.global_batch_size / ranks.size()),
        network_(config_.model, device),
        optimizer_(make_optimizer(config_.optimizer, network_.parameters())),
        ema_((initialise(network_), network_.parameters()), config_.optimizer.ema_decay, false),
        sync_(ranks_, tensors_of(network_)),
        typical_(config_) {
    network_.set_bfloat16_blocks(o.precision == "bf16");
    const int64_t batch = config_.train.global_batch_size;
    if (plan.train) {
      const int64_t pad =
          config_.flow.pad_token == PadToken::kEos ? plan.tokenizer->eos_id() : plan.tokenizer->pad_id();
      loader_ = std::make_unique<Loader>(
          plan.train, LoaderConfig{batch, config_.data.max_length, pad, config_.train.seed});
      codec_ = make_latent_codec(config_.latents, device);
    } else {
      codec_ = std::make_unique<NoiseCodec>(share_, o.length, o.latent, o.vocab, device);
      noise_ = noise_batch(o, share_ * ranks_.rank(), share_);
    }
    objective_ = std::make_unique<FlowObjective>(
        network_, *codec_, config_, [this](const Batch& rows, int64_t step) { return draw(rows, step); });
  }

  RoundWork operator()(int64_t) {
    const int64_t step = typical_.next();
    const std::vector<Batch> batches = in_phase("data", [&] { return batches_of(step); });
    rows_ = {};
    Learner learner{network_, *optimizer_, ema_, *objective_, config_.optimizer.grad_clip, ranks_, sync_};
    const double lr = peak_learning_rate(config_.optimizer, config_.train.global_batch_size);
    if (!train_step(learner, {batches, step, lr}).finite) numerical_error("the loss is not finite");
    const bool self_cond = config_.flow.self_cond_prob > 0;
    return {step_flops(config_.model, self_cond, rows_, config_.data.max_length),
            {"no_grad_forward", "forward", "backward"}};
  }

 private:
  static std::vector<at::Tensor> tensors_of(const ElfNet& network) {
    std::vector<at::Tensor> tensors;
    for (const ParamRef& parameter : network.parameters()) tensors.push_back(parameter.tensor);
    return tensors;
  }

  // The numbers of a micro-batch; what they make of its rows is counted.
  StepDraws draw(const Batch& batch, int64_t step) {
    StepDraws drawn = draw_step(config_.flow, {batch.length(), config_.model.latent_dim}, config_.train.seed,
                                step, batch.samples);
    const StepRows some = rows_of(drawn, config_.flow);
    rows_ = {rows_.all + some.all, rows_.decode + some.decode, rows_.coin + some.coin};
    return drawn;
  }

  std::vector<Batch> batches_of(int64_t step) const {
    if (!loader_) return {noise_};
    const int64_t begin = share_ * ranks_.rank(), end = begin + share_;
    const int64_t micro = config_.train.micro_batch_size > 0 ? config_.train.micro_batch_size : share_;
    std::vector<Batch> batches;
    for (int64_t first = begin; first < end; first += micro)
      batches.push_back(loader_->batch(step, first, std::min(micro, end - first)));
    return batches;
  }

  RunConfig config_;
  Ranks& ranks_;
  int64_t share_;  // rows of this rank
  ElfNet network_;
  std::unique_ptr<Optimizer> optimizer_;
  Ema ema_;
  GradientSync sync_;
  TypicalSteps typical_;
  std::unique_ptr<Loader> loader_;
  std::unique_ptr<LatentCodec> codec_;
  std::unique_ptr<FlowObjective> objective_;
  Batch noise_;
  StepRows rows_{};
};

// Batches of samples as elf-sample makes them, from noise to token ids.
class SamplingRounds {
 public:
  SamplingRounds(const Options& o, const RunPlan& plan, at::Device device)
      : config_(plan.config),
        device_(device),
        batch_(o.batch),
        network_(config_.model, device),
        replayed_(network_, config_.sampling, make_recorder(device)) {
    initialise(network_);
    network_.set_bfloat16_blocks(o.precision == "bf16");
    const int64_t condition = config_.data.max_input_length, length = config_.data.max_length;
    if (condition == 0) return;
    const std::vector<int64_t> rows = sample_range(0, batch_);
    conditions_.latents = normal({0, Purpose::kTable}, rows, {length, config_.model.latent_dim}).to(device);
    conditions_.mask = at::arange(length).lt(condition).expand({batch_, length}).contiguous().to(device);
  }

  RoundWork operator()(int64_t round) {
    const SamplerModel model{replayed_, Model::network_traits(config_), config_.flow.denoiser_noise_scale,
                             config_.flow.t_eps};
    const int64_t length = config_.data.max_length;
    const SamplerDraws draws = draw_sampler(config_.sampling, sample_range(round * batch_, batch_), length,
                                            config_.model.latent_dim, device_);
    const LatentSamples made =
        in_phase("steps", [&] { return sample_latents(model, config_.sampling, draws, conditions_); });
    in_phase("decode", [&] { return decode_ids(model, made.latents, config_.sampling.self_cond_cfg); });
    const RowFlops row = forward_flops(config_.model, length, model.traits.self_cond);
    return {static_cast<double>(made.rows) * (row.trunk + row.denoise_head) +
                static_cast<double>(batch_) * (row.trunk + row.decode_head),
            {}};
  }

 private:
  RunConfig config_;
  at::Device device_;
  int64_t batch_;
  ElfNet network_;
  ReplayedDenoiser replayed_;
  SampleConditions conditions_;
};

void print(const Json& j) {
  std::printf("%s %s, batch %lld x %lld, %s, %lld threads\n", j["what"].get<std::string>().c_str(),
              j["preset"].get<std::string>().c_str(), static_cast<long long>(j["batch"].get<int64_t>()),
              static_cast<long long>(j["length"].get<int64_t>()), j["device"].get<std::string>().c_str(),
              static_cast<long long>(j["threads"].get<int64_t>()));
  std::printf("  %.4g s a round (median of %zu), %.5g tokens/s\n", j["seconds_median"].get<double>(),
              j["seconds"].size(), j["tokens_per_second"].get<double>());
  for (const auto& [name, seconds] : j["phases_median"].items())
    std::printf("    %-18s %8.4f s\n", name.c_str(), seconds.get<double>());
  std::printf("  %.5g GFLOP by the mathematics; matrix products run at %.4g GFLOP/s\n",
              j["model_gflop"].get<double>(), j["gemm_gflops"].get<double>());
  std::printf("  utilisation %.1f %% (of the whole round %.1f %%), peak memory %.0f MiB\n",
              100 * j["utilisation"].get<double>(), 100 * j["utilisation_whole"].get<double>(),
              j["peak_rss_mib"].get<double>());
}

void run_speed(const Options& o, const CommonOptions& common) {
  const Launch launch = read_launch();
  const at::Device device = device_of_process(common.device_name, launch.local_rank);
  if (launch.size > 1 && o.what != "train")
    usage_error("elf-bench speed sample is for one process; ", launch.size, " were started");
  Ranks ranks(launch, device, "elf-bench speed", {});
  if (o.condition >= o.length)
    usage_error("--condition ", o.condition, " leaves nothing of --length ", o.length);
  const RunPlan plan = make_plan(o);
  const RunConfig& config = plan.config;
  Options resolved = o;
  resolved.length = config.data.max_length;
  if (!o.config.empty())
    resolved.batch = o.what == "train" ? config.train.global_batch_size : config.sampling.batch_size;
  if (o.what == "train" && resolved.batch % ranks.size() != 0)
    usage_error("--batch ", resolved.batch, " is not divisible by ", ranks.size(), " ranks");
  std::function<RoundWork(int64_t)> round;
  double tokens = static_cast<double>(resolved.batch * resolved.length);
  if (o.what == "train") {
    round = [rounds = std::make_shared<TrainingRounds>(resolved, plan, device, ranks)](int64_t i) {
      return (*rounds)(i);
    };
  } else {
    round = [rounds = std::make_shared<SamplingRounds>(resolved, plan, device)](int64_t i) {
      return (*rounds)(i);
    };
    tokens = static_cast<double>(resolved.batch * (resolved.length - config.data.max_input_length));
  }
  const SpeedReport report =
      measure_rounds(o.steps, device, o.precision == "bf16" ? at::kBFloat16 : at::kFloat, round);
  Json json = {{"what", o.what},
               {"preset", o.config.empty() ? o.preset : config.model.preset},
               {"batch", resolved.batch},
               {"length", resolved.length},
               {"parameters", parameter_count(config.model)}};
  json.update(to_json(report, tokens));
  json.update({{"device", device.str()},
               {"threads", at::get_num_threads()},
               {"precision", o.precision},
               {"ranks", ranks.size()},
               {"version", ELF_VERSION},
               {"revision", ELF_GIT_REVISION},
               {"torch", ELF_LIBTORCH_VERSION}});
  if (!ranks.first()) return;
  if (o.json) {
    std::cout << json.dump() << "\n";
  } else {
    print(json);
  }
}

}  // namespace

void add_speed_command(Command& app, BenchCommands& commands) {
  Command* speed = app.add_subcommand("speed", "Seconds of training steps or of sampling, by phase");
  const auto o = std::make_shared<Options>();
  std::vector<std::string> presets;
  for (const ModelPreset& preset : model_presets()) presets.push_back(preset.name);
  speed->add_option("what", o->what, "train: optimiser steps; sample: batches from noise to token ids")
      ->required()
      ->one_of({"train", "sample"});
  Option* config = speed->add_option(
      "--config", o->config, "Configuration with its dataset, instead of the sizes below (see configs/)");
  speed->add_option("--set", o->assignments, "SECTION.KEY=VALUE of the configuration; may be repeated")
      ->allow_extra_args(false);
  const auto size = [&](const char* name, auto& value, const char* help) {
    return speed->add_option(name, value, help)->capture_default_str()->excludes(config);
  };
  const auto count = [&](const char* name, int64_t& value, const char* help) {
    size(name, value, help)->between(int64_t{1}, int64_t{1} << 30);
  };
  size("--preset", o->preset, "Depth, width and heads")->one_of(presets);
  count("--batch", o->batch, "Rows");
  count("--length", o->length, "Positions of a row");
  count("--latent", o->latent, "Latent width");
  count("--vocab", o->vocab, "Vocabulary");
  count("--sampling-steps", o->sampling_steps, "sample: SDE steps");
  size("--condition", o->condition, "Positions that are given, of --length")->not_negative();
  size("--cfg", o->cfg, "sample: guidance on the condition; 1 = none");
  speed->add_option("--steps", o->steps, "Rounds that are timed, after one that is not")
      ->capture_default_str()
      ->between(int64_t{1}, int64_t{1} << 30);
  speed->add_option("--precision", o->precision, "Of the blocks: float32 or bf16")
      ->capture_default_str()
      ->one_of({"float32", "bf16"});
  speed->add_flag("--json", o->json, "One JSON object");
  with_examples(*speed,
                "  elf-bench speed train --preset elf-b --batch 8 --length 128\n"
                "  elf-bench speed sample --preset elf-b --batch 8 --length 128 --sampling-steps 8 --json\n"
                "  elf-bench speed train --config configs/nano-verses.yaml\n");
  commands["speed"] = [o](const CommonOptions& common) {
    run_speed(*o, common);
    return 0;
  };
}

}  // namespace elf::app
