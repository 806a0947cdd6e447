#include "elf/train/trainer.h"

#include <ATen/ATen.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "elf/base/progress.h"
#include "elf/data/loader.h"
#include "elf/flow/draws.h"
#include "elf/model/flops.h"
#include "elf/model/model_dir.h"
#include "elf/optim/lr_schedule.h"
#include "elf/train/checkpoint.h"
#include "elf/train/metrics_log.h"
#include "elf/train/train_step.h"
#include "elf/train/validation.h"
#include "signals.h"

namespace elf {
namespace fs = std::filesystem;
using json = nlohmann::json;
using Clock = std::chrono::steady_clock;
namespace {

// A run of train.minutes times so many of its steps, the first few left out, before its length is fixed; less
// when they take long.
constexpr int64_t kCalibrationWarmup = 5, kCalibrationSteps = 50, kFewestTimedSteps = 2;
constexpr double kCalibrationShare = 0.1;  // of the minutes

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double peak_memory_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// GFLOP/s of a float32 matrix product on `device`, now.
double gemm_rate(at::Device device) {
  const int64_t n = device.is_cpu() ? 512 : 4096;
  const at::Tensor a = at::ones({n, n}, at::TensorOptions().device(device)), b = at::ones_like(a);
  at::mm(a, b).sum().item();
  const auto start = Clock::now();
  const int repeats = 10;
  at::Tensor c;
  for (int i = 0; i < repeats; ++i) c = at::mm(a, b);
  c.sum().item();
  return repeats * 2.0 * static_cast<double>(n * n * n) / seconds_since(start) / 1e9;
}

std::string short_number(double value, const char* format = "%.4g") {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

json finite_or_null(double value) {
  return std::isfinite(value) ? json(value) : json(nullptr);
}

}  // namespace

class Trainer::Implementation {
 public:
  Implementation(const RunPlan& plan, at::Device device, Resume resume);
  TrainOutcome run();

 private:
  void initialise_weights();
  void resume_or_start(Resume resume);
  StepReport one_step();
  void fix_length();
  void guard(const StepReport& report);
  void log_step(const StepReport& report, double step_seconds);
  void validate_now();
  void save();
  fs::path checkpoints() const { return fs::path(config_.train.out) / "checkpoints"; }
  double epoch() const { return static_cast<double>(step_) / plan_.steps_per_epoch; }

  RunPlan plan_;
  RunConfig config_;
  at::Device device_;
  ElfNet network_, averaged_;  // averaged_: holds the averages during validation
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<LatentCodec> codec_;
  Ema ema_;
  Loader train_data_;
  std::optional<MetricsLog> metrics_;

  // What a checkpoint's state.json holds.
  int64_t step_ = 0, total_steps_ = 0, warmup_steps_ = 0, skipped_ = 0, skipped_in_a_row_ = 0;
  int64_t best_step_ = 0;
  double best_loss_ = std::numeric_limits<double>::infinity(), trained_seconds_ = 0;

  int64_t last_validated_ = -1, last_saved_ = -1;
  double last_valid_loss_ = 0;
  Clock::time_point timing_start_;  // of the calibration
  int64_t timing_first_ = -1;
  double gemm_gflops_ = 0;
};

namespace {

LoaderConfig loader_config(const RunConfig& config, const SentencePieceTokenizer& tokenizer) {
  return {.global_batch = config.train.global_batch_size,
          .length = config.data.max_length,
          .pad_id = config.flow.pad_token == PadToken::kEos ? tokenizer.eos_id() : tokenizer.pad_id(),
          .seed = config.train.seed};
}

}  // namespace

Trainer::Implementation::Implementation(const RunPlan& plan, at::Device device, Resume resume)
    : plan_(plan),
      config_(plan.config),
      device_(device),
      network_(config_.model, device),
      averaged_(config_.model, device),
      optimizer_(make_optimizer(config_.optimizer, network_.parameters())),
      codec_(make_latent_codec(config_.latents, device)),
      ema_((initialise_weights(), network_.parameters()), config_.optimizer.ema_decay,
           config_.optimizer.ema_warmup),
      train_data_(plan.train, loader_config(config_, *plan.tokenizer)),
      total_steps_(plan.steps) {
  for (const ParamRef& parameter : network_.parameters()) parameter.tensor.requires_grad_(true);
  warmup_steps_ =
      config_.optimizer.warmup_steps > 0
          ? config_.optimizer.warmup_steps
          : static_cast<int64_t>(std::llround(config_.optimizer.warmup_epochs * plan.steps_per_epoch));
  resume_or_start(resume);
}

void Trainer::Implementation::initialise_weights() {
  if (codec_->dim() != config_.model.latent_dim) {
    usage_error(config_.latents.path, ": its width is ", codec_->dim(), ", but model.latent_dim is ",
                config_.model.latent_dim);
  }
  require_tokenizer(*codec_, config_.latents.path, plan_.tokenizer->hash(), plan_.tokenizer->size());
  network_.initialise(config_.train.seed);
}

void Trainer::Implementation::resume_or_start(Resume resume) {
  const fs::path out = config_.train.out;
  const std::optional<fs::path> newest = newest_checkpoint(checkpoints());
  if (newest && resume == Resume::kNever) {
    usage_error(out.string(), ": holds a run already (", newest->filename().string(),
                "); give another --out, or --resume auto to go on");
  }
  if (newest) {
    const RunConfig before = load_run_config(out / "config.yaml");
    if (!(before.model == config_.model))
      usage_error(out.string(),
                  ": holds a run with another `model:` section (see its config.yaml); give another --out");
    if (!(before.flow == config_.flow))
      log_warning(out.string() + ": the run began with another `flow:` section; going on with the new one");
    const Checkpoint checkpoint = load_checkpoint(*newest);
    const json& state = checkpoint.state;
    if (state.at("train_data").get<std::string>() != plan_.train->info().data_hash) {
      usage_error(out.string(), ": the run was trained on another dataset than ", config_.data.train,
                  "; give another --out");
    }
    network_.load(checkpoint.model);
    ema_.load(checkpoint.ema, state.at("ema_updates").get<int64_t>());
    optimizer_->load_state(checkpoint.optimizer, state.at("optimizer_steps").get<int64_t>());
    step_ = state.at("step").get<int64_t>();
    skipped_ = state.at("skipped_steps").get<int64_t>();
    best_step_ = state.at("best_step").get<int64_t>();
    if (state.at("best_valid_loss").is_number()) best_loss_ = state.at("best_valid_loss").get<double>();
    trained_seconds_ = state.at("trained_seconds").get<double>();
    if (total_steps_ == 0)
      total_steps_ = state.at("total_steps").get<int64_t>();  // train.minutes: fixed when the run began
    last_saved_ = last_validated_ = step_;
  }
  std::error_code error;
  fs::create_directories(checkpoints(), error);
  if (error) environment_error(out.string(), ": the run folder cannot be made: ", error.message());
  log_to_file(out / "log.txt");
  if (newest) {
    log_info(cat("resuming ", newest->string(), " at step ", step_));
  } else {
    write_model_parts(out, config_);
  }
  metrics_.emplace(out / "metrics.jsonl", step_);
}

StepReport Trainer::Implementation::one_step() {
  const TrainConfig& train = config_.train;
  const int64_t micro = train.micro_batch_size > 0 ? train.micro_batch_size : train.global_batch_size;
  std::vector<Batch> batches;
  for (int64_t first = 0; first < train.global_batch_size; first += micro) {
    batches.push_back(train_data_.batch(step_, first, std::min(micro, train.global_batch_size - first)));
  }
  const StepShape shape{config_.data.max_length, config_.model.latent_dim};
  const DrawFunction draws =
      [&](const Batch& batch) {  // all that is random in a micro-batch gets its name here
        if (config_.model.dropout > 0) network_.set_dropout(nn::DropoutKey{train.seed, step_, batch.samples});
        return draw_step(config_.flow, shape, train.seed, step_, batch.samples);
      };
  const double lr =
      learning_rate(config_.optimizer, train.global_batch_size, step_, total_steps_, warmup_steps_);
  Learner learner{network_, *optimizer_, ema_, *codec_};
  StepReport report = train_step(learner, config_, batches, draws, lr);
  ++step_;
  return report;
}

// Fixes the number of steps of a run of train.minutes from the time of its first ones.
void Trainer::Implementation::fix_length() {
  if (total_steps_ > 0) return;
  if (timing_first_ < 0) timing_first_ = step_ + kCalibrationWarmup;
  if (step_ <= timing_first_) {
    timing_start_ = Clock::now();
    return;
  }
  const int64_t timed = step_ - timing_first_;
  const double budget = config_.train.minutes * 60, spent = seconds_since(timing_start_);
  if (timed < kFewestTimedSteps || (timed < kCalibrationSteps && spent < kCalibrationShare * budget)) return;
  const double step_seconds = spent / static_cast<double>(timed);
  const double left = std::max(0.0, budget - trained_seconds_);
  total_steps_ = step_ + 1 + static_cast<int64_t>(left / step_seconds);
  log_info(cat("a step takes ", short_number(step_seconds * 1000, "%.0f"), " ms: ", total_steps_,
               " steps in ", config_.train.minutes, " minutes"));
}

void Trainer::Implementation::guard(const StepReport& report) {
  if (report.finite) {
    skipped_in_a_row_ = 0;
    return;
  }
  ++skipped_;
  ++skipped_in_a_row_;
  const char* term = !std::isfinite(report.l2_loss)   ? "denoise loss"
                     : !std::isfinite(report.ce_loss) ? "decode loss"
                                                      : "gradient";
  log_warning(cat("step ", step_, ": the ", term, " is not finite; the step is skipped (", skipped_in_a_row_,
                  " in a row)"));
  if (skipped_in_a_row_ < config_.train.max_skipped_steps) return;
  const Batch batch = train_data_.batch(step_ - 1, 0, config_.train.global_batch_size);
  std::string rows;
  for (size_t i = 0; i < std::min<size_t>(8, batch.rows.size()); ++i)
    rows += cat(i ? ", " : "", batch.rows[i]);
  numerical_error("step ", step_, ": the ", term, " was not finite ", skipped_in_a_row_,
                  " times in a row (rows ", rows, batch.rows.size() > 8 ? ", ..." : "", " of ",
                  config_.data.train, "); lower the learning rate; the last checkpoint is of step ",
                  last_saved_);
}

void Trainer::Implementation::log_step(const StepReport& report, double step_seconds) {
  const double rows_per_second = static_cast<double>(config_.train.global_batch_size) / step_seconds;
  const double flops = training_flops(config_.model, config_.flow, config_.data.max_length) * rows_per_second;
  metrics_->write({{"step", step_},
                   {"epoch", epoch()},
                   {"loss", finite_or_null(report.loss)},
                   {"l2_loss", finite_or_null(report.l2_loss)},
                   {"ce_loss", finite_or_null(report.ce_loss)},
                   {"accuracy", report.accuracy},
                   {"lr", learning_rate(config_.optimizer, config_.train.global_batch_size, step_ - 1,
                                        total_steps_, warmup_steps_)},
                   {"grad_norm", finite_or_null(report.grad_norm)},
                   {"tokens_per_second", rows_per_second * static_cast<double>(config_.data.max_length)},
                   {"mfu", flops / (gemm_gflops_ * 1e9)},
                   {"pad_fraction", report.pad_fraction},
                   {"skipped_steps", skipped_},
                   {"peak_memory_mib", peak_memory_mib()}});
}

void Trainer::Implementation::validate_now() {
  if (!plan_.valid || last_validated_ == step_) return;
  last_validated_ = step_;
  averaged_.load(ema_.averages());
  const ValidationReport report =
      run_validation(averaged_, *codec_, *plan_.valid, train_data_.config().pad_id, config_);
  metrics_->write({{"step", step_},
                   {"epoch", epoch()},
                   {"valid_loss", finite_or_null(report.loss)},
                   {"valid_l2_loss", finite_or_null(report.l2_loss)},
                   {"valid_ce_loss", finite_or_null(report.ce_loss)},
                   {"valid_accuracy", report.accuracy},
                   {"valid_rows", report.rows}});
  log_info(cat("step ", step_, ": held-out loss ", short_number(report.loss), " (denoise ",
               short_number(report.l2_loss), ", decode ", short_number(report.ce_loss), "), decode accuracy ",
               short_number(100 * report.accuracy, "%.1f"), " %"));
  last_valid_loss_ = report.loss;
}

void Trainer::Implementation::save() {
  if (last_saved_ == step_) return;
  const bool is_best = last_validated_ == step_ && last_valid_loss_ < best_loss_;  // the best of those saved
  if (is_best) {
    best_loss_ = last_valid_loss_;
    best_step_ = step_;
  }
  Checkpoint checkpoint{network_.state(), ema_.averages(), optimizer_->state(), {}};
  checkpoint.state = {{"step", step_},
                      {"total_steps", total_steps_},
                      {"epoch", epoch()},
                      {"optimizer_steps", optimizer_->steps()},
                      {"ema_updates", ema_.updates()},
                      {"skipped_steps", skipped_},
                      {"best_step", best_step_},
                      {"best_valid_loss", finite_or_null(best_loss_)},
                      {"trained_seconds", trained_seconds_},
                      {"seed", config_.train.seed},
                      {"train_data", plan_.train->info().data_hash},
                      {"tokenizer", plan_.tokenizer->hash()},
                      {"encoder", codec_->digest()}};
  save_checkpoint(checkpoints(), step_, checkpoint);
  last_saved_ = step_;
  if (is_best) mark_best(checkpoints(), step_);
  remove_old_checkpoints(checkpoints(), config_.train.keep_last);
}

TrainOutcome Trainer::Implementation::run() {
  const TrainConfig& train = config_.train;
  const SignalWatch signals;
  gemm_gflops_ = gemm_rate(device_);
  Progress progress("training", total_steps_, "steps");
  auto last_time = Clock::now();
  int64_t timed_steps = 0;
  while (total_steps_ == 0 || step_ < total_steps_) {
    const auto start = Clock::now();
    fix_length();
    const StepReport report = one_step();
    trained_seconds_ += seconds_since(start);
    ++timed_steps;
    guard(report);
    if (total_steps_ > 0) progress.set_total(total_steps_);
    const bool last = step_ == total_steps_;
    if (step_ % train.log_every == 0 || last) {
      log_step(report, seconds_since(last_time) / static_cast<double>(timed_steps));
      last_time = Clock::now();
      timed_steps = 0;
    }
    progress.update(step_,
                    cat("loss ", short_number(report.loss), "  ",
                        short_number(static_cast<double>(train.global_batch_size * config_.data.max_length) /
                                         seconds_since(start),
                                     "%.0f"),
                        " tokens/s"));
    const bool stop = signals.stop_requested();
    if (last || (train.valid_every > 0 && step_ % train.valid_every == 0)) {
      validate_now();
      last_time = Clock::now();
      timed_steps = 0;
    }
    if (last || stop || (train.save_every > 0 && step_ % train.save_every == 0)) save();
    if (stop && !last) return {step_, true};
  }
  validate_now();
  save();
  progress.finish();
  log_info(cat("done: ", step_, " steps in ", duration_text(trained_seconds_), ", peak memory ",
               short_number(peak_memory_mib(), "%.0f"), " MiB; run folder ", train.out));
  return {step_, false};
}

Trainer::Trainer(const RunPlan& plan, at::Device device, Resume resume)
    : implementation_(std::make_unique<Implementation>(plan, device, resume)) {}
Trainer::~Trainer() = default;
TrainOutcome Trainer::run() {
  return implementation_->run();
}

}  // namespace elf
