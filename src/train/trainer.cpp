#include "elf/train/trainer.h"

#include <ATen/ATen.h>

#include <chrono>
#include <cmath>
#include <optional>

#include "batch_feed.h"
#include "elf/base/error.h"
#include "elf/base/json.h"
#include "elf/base/log.h"
#include "elf/config/enum_names.h"
#include "elf/data/loader.h"
#include "elf/model/model_dir.h"
#include "elf/optim/lr_schedule.h"
#include "elf/train/cached_codec.h"
#include "elf/train/run_state.h"
#include "elf/train/signals.h"
#include "elf/train/train_step.h"
#include "elf/train/validation.h"
#include "faults.h"
#include "reporter.h"
#include "run_keeper.h"
#include "run_length.h"
#include "step_guard.h"

namespace elf {
using json = nlohmann::json;
using nlohmann::ordered_json;

class Trainer::Implementation {
 public:
  Implementation(const RunPlan& plan, at::Device device, Ranks& ranks, TrainOptions options);
  TrainOutcome run_telling_where();

 private:
  TrainOutcome run();
  [[noreturn]] void fail(ErrorKind kind, const std::string& message) const;
  void initialise_weights();
  void require_same_latents(const json& saved) const;
  void resume();
  StepReport one_step(const SignalWatch& signals);
  bool measure(bool last);
  ordered_json validate();
  ordered_json sample();
  void save(bool is_best);
  double lr_of(int64_t step) const;
  bool due(int64_t every) const { return every > 0 && state_.step % every == 0; }
  bool finished() const {
    return best_.out_of_patience() || (state_.total_steps > 0 && state_.step >= state_.total_steps);
  }

  RunPlan plan_;
  const RunConfig& config_;
  at::Device device_;
  Ranks& ranks_;
  TrainOptions options_;

  ElfNet network_, averaged_;  // averaged_: holds the averages during validation and sampling
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<LatentCodec> codec_;
  Ema ema_;
  std::unique_ptr<TrainingObjective> objective_;
  Loader data_;
  BatchFeed feed_;
  GradientSync sync_;
  RunLength length_;
  StepGuard guard_;

  RunState state_;
  Best best_;
  int64_t warmup_steps_ = 0;

  std::unique_ptr<RunKeeper> keeper_;
  std::unique_ptr<Reporter> reporter_;  // on the first rank
};

namespace {

LoaderConfig loader_config(const RunConfig& config, const SentencePieceTokenizer& tokenizer) {
  return {.global_batch = config.train.global_batch_size,
          .length = config.data.max_length,
          .pad_id = config.flow.pad_token == PadToken::kEos ? tokenizer.eos_id() : tokenizer.pad_id(),
          .seed = config.train.seed};
}

std::vector<at::Tensor> tensors_of(const ParamList& parameters) {
  std::vector<at::Tensor> tensors;
  for (const ParamRef& parameter : parameters) tensors.push_back(parameter.tensor);
  return tensors;
}

// What is trained by what, on what.
std::string description(const RunConfig& config, const ParamList& parameters, int64_t ranks,
                        at::Device device) {
  int64_t matrices = 0, numbers = 0;
  for (const ParamRef& parameter : parameters) {
    matrices += parameter.is_matrix();
    numbers += parameter.tensor.numel();
  }
  const auto rest = static_cast<int64_t>(parameters.size()) - matrices;
  const std::string rule =
      config.optimizer.kind == OptimizerKind::kAdamW
          ? cat("AdamW for all ", parameters.size(), " tensors")
          : cat("Muon for ", matrices, " matrices, Nesterov Adam for ", rest, " vectors and tokens");
  return cat(short_number(static_cast<double>(numbers) / 1e6, "%.2f"), " M parameters; ", rule, "; ", ranks,
             ranks == 1 ? " rank" : " ranks", " for ", config.train.global_batch_size, " rows a step; ",
             device.str());
}

ElfNet network_of(const RunConfig& config, at::Device device) {
  ElfNet network(config.model, device);
  const bool cuda = device.is_cuda();
  if (config.train.precision == Precision::kBf16 && !cuda)
    usage_error(
        "train.precision bf16 needs a CUDA device; on the CPU it would be a hundred times slower: set "
        "auto or float32");
  network.set_bfloat16_blocks(cuda && config.train.precision != Precision::kFloat32);
  network.set_recompute(config.train.recompute);
  return network;
}

}  // namespace

Trainer::Implementation::Implementation(const RunPlan& plan, at::Device device, Ranks& ranks,
                                        TrainOptions options)
    : plan_(plan),
      config_(plan_.config),
      device_(device),
      ranks_(ranks),
      options_(std::move(options)),
      network_(network_of(config_, device)),
      averaged_(network_of(config_, device)),
      optimizer_(make_optimizer(config_.optimizer, network_.parameters(), &ranks)),
      codec_(make_training_codec(config_.latents, plan.train->info(), config_.data.max_length,
                                 loader_config(config_, *plan.tokenizer).pad_id, device)),
      ema_((initialise_weights(), network_.parameters()), config_.optimizer.ema_decay,
           config_.optimizer.ema_warmup),
      objective_(make_training_objective(config_, network_, *codec_)),
      data_(plan.train, loader_config(config_, *plan.tokenizer)),
      feed_(data_, config_.train.micro_batch_size, ranks.rank(), ranks.size()),
      sync_(ranks, tensors_of(network_.parameters())),
      length_(plan.steps > 0 ? 0 : config_.train.minutes, ranks),
      guard_(config_.train),
      best_(config_.train) {
  if (plan.valid && plan.valid->info().rows == 0)
    usage_error(config_.data.valid, ": holds no rows; name a dataset to validate on, or none");
  signal_numbers(config_.train.stop_signals);
  if (device.is_cuda()) at::globalContext().setAllowTF32CuBLAS(config_.train.tf32);
  warmup_steps_ =
      config_.optimizer.warmup_steps > 0
          ? config_.optimizer.warmup_steps
          : static_cast<int64_t>(std::llround(config_.optimizer.warmup_epochs * plan.steps_per_epoch));
  state_.total_steps = plan.steps;
  keeper_ = std::make_unique<RunKeeper>(plan_, options_.resume, ranks);  // all else has been found good
  resume();
}

void Trainer::Implementation::initialise_weights() {
  codec_->bind(network_.unembedding());
  if (codec_->dim() != config_.model.latent_dim) {
    usage_error(config_.latents.path, ": its width is ", codec_->dim(), ", but model.latent_dim is ",
                config_.model.latent_dim);
  }
  require_tokenizer(*codec_, config_.latents.path, plan_.tokenizer->hash(), plan_.tokenizer->size());
  if (!config_.latents.decoder.empty())
    load_decoder(config_, *codec_, at::kCPU);  // only to be sure that it fits
  network_.initialise(config_.train.seed);
  if (config_.latents.source == LatentSource::kLearned) renormalise_unembedding(network_.unembedding());
  if (!config_.train.init_from.empty())
    network_.load(load_weights(config_.train.init_from), config_.train.init_from);
}

void Trainer::Implementation::require_same_latents(const json& saved) const {
  const std::string before = saved.value("encoder", ""), now = codec_->digest();
  if (before == now || before.empty()) return;
  usage_error(config_.latents.path, ": gives the latents ", now, " (", enum_name(config_.latents.dtype),
              "), but the run in ", config_.train.out, " was trained on ", before, " (",
              saved.value("encoder_dtype", "float32"), "); give the same `latents:`, or another --out");
}

void Trainer::Implementation::resume() {
  const json saved = keeper_->restore({network_, ema_, *optimizer_});
  if (!saved.is_null()) {
    require_same_latents(saved);
    const int64_t planned = state_.total_steps;
    state_ = run_state_of(saved);
    if (planned > 0) state_.total_steps = planned;  // else train.minutes: fixed when the run began
    if (saved.contains("best")) best_.load(saved.at("best"));
  }
  keeper_->begin();  // all that can be refused has been seen
  if (!ranks_.first() || finished()) return;
  log_info(description(config_, network_.parameters(), ranks_.size(), device_));
  reporter_ = std::make_unique<Reporter>(plan_, device_, ranks_.size(), keeper_->folder(), state_.step);
}

double Trainer::Implementation::lr_of(int64_t step) const {
  return learning_rate(config_.optimizer, config_.train.global_batch_size, step, state_.total_steps,
                       warmup_steps_);
}

StepReport Trainer::Implementation::one_step(const SignalWatch& signals) {
  const auto start = std::chrono::steady_clock::now();
  fault_point("step", state_.step + 1);
  const std::vector<Batch> batches = feed_.next(state_.step);
  fault_point("forward", state_.step + 1);
  Learner learner{network_, *optimizer_, ema_, *objective_, config_.optimizer.grad_clip, ranks_, sync_};
  const StepReport report = train_step(
      learner, {batches, state_.step, lr_of(state_.step), [&] { return signals.stop_requested(); }});
  ++state_.step;
  state_.trained_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

ordered_json Trainer::Implementation::validate() {
  averaged_.load(ema_.averages());
  ValidationReport report =
      run_validation(averaged_, *codec_, *plan_.valid, data_.config().pad_id, config_, ranks_);
  if (const auto injected = fault_at("valid_loss", state_.step)) report.loss = *injected;
  if (ranks_.first())
    log_info(cat("step ", state_.step, ": held-out loss ", short_number(report.loss), " (denoise ",
                 short_number(report.l2_loss), ", decode ", short_number(report.ce_loss),
                 "), decode accuracy ", short_number(100 * report.accuracy, "%.1f"), " %"));
  return {{"valid_loss", finite_or_null(report.loss)},
          {"valid_l2_loss", finite_or_null(report.l2_loss)},
          {"valid_ce_loss", finite_or_null(report.ce_loss)},
          {"valid_accuracy", report.accuracy},
          {"valid_rows", report.rows}};
}

ordered_json Trainer::Implementation::sample() {
  std::string figures = "{}";
  ranks_.first_does("sampling", [&] {
    averaged_.load(ema_.averages());
    codec_->bind(averaged_.unembedding());
    const SampleFigures drawn = options_.sample(config_, averaged_, *codec_, state_.step);
    reporter_->samples(state_.step, drawn.texts);
    for (size_t i = 0; i < std::min<size_t>(3, drawn.texts.size()); ++i) log_info("  | " + drawn.texts[i]);
    figures = drawn.figures.dump();
  });
  return parse_json_or_throw<ordered_json>(ranks_.of_first(figures));
}

// Validates and samples when due. True: the averages are the best so far.
bool Trainer::Implementation::measure(bool last) {
  ordered_json figures;
  if (plan_.valid && (last || due(config_.train.valid_every))) figures = validate();
  if (options_.sample && config_.train.sample_every > 0 && (last || due(config_.train.sample_every)))
    figures.update(sample());
  if (figures.empty()) return false;
  if (reporter_) {
    reporter_->figures(state_, figures);
    reporter_->restart_clock();
  }
  return best_.offer(state_.step, figures);
}

void Trainer::Implementation::save(bool is_best) {
  json state = to_json(state_);
  state.update({{"epoch", static_cast<double>(state_.step) / plan_.steps_per_epoch},
                {"best", best_.to_json()},
                {"seed", config_.train.seed},
                {"encoder_dtype", enum_name(config_.latents.dtype)},
                {"encoder", codec_->digest()}});
  const ordered_json figures = keeper_->save({network_, ema_, *optimizer_}, state, is_best);
  if (!figures.empty()) {
    if (reporter_) reporter_->figures(state_, figures);
    if (best_.offer(state_.step, figures)) keeper_->mark_best(state_.step);
  }
  if (reporter_) reporter_->restart_clock();
}

TrainOutcome Trainer::Implementation::run() {
  if (finished()) {
    if (ranks_.first())
      log_info(cat("nothing to do: ", config_.train.out, " has reached step ", state_.step, " of ",
                   state_.total_steps));
    return {state_.step, false};
  }
  const SignalWatch signals(config_.train.stop_signals);
  bool stop = options_.stop_after > 0 && state_.step >= options_.stop_after, last = false;
  if (stop) save(false);
  while (!last && !stop) {
    length_.before_step(state_);
    const StepReport report = one_step(signals);
    guard_.check(report, state_, config_.data.train, keeper_->last_saved());
    last = finished();
    const bool line_due = due(config_.train.log_every) || last;
    if (reporter_)
      reporter_->after_step(state_, report, lr_of(state_.step - 1), feed_.waited_seconds(), line_due);
    stop = report.stop || state_.step == options_.stop_after;
    const bool is_best = measure(last);
    if (best_.out_of_patience()) {
      last = true;
      if (ranks_.first())
        log_info(cat("step ", state_.step, ": ", config_.train.best_metric, " has not improved ",
                     best_.stalled(), " times; the best was at step ", best_.step()));
    }
    const bool save_due = due(config_.train.save_every) || (is_best && config_.train.save_every > 0);
    if (last || stop || (save_due && report.finite)) save(is_best);
  }
  keeper_->finish();
  if (reporter_) reporter_->finish(state_);
  if (!ranks_.first()) return {state_.step, !last};
  if (stop && !last) {
    log_info(cat("stopped ", signals.stop_requested() ? "by " + signals.name() + " " : "", "at step ",
                 state_.step, ", saved; the same command goes on from there"));
  } else {
    log_info(cat("done: ", state_.step, " steps in ", duration_text(state_.trained_seconds), ", peak memory ",
                 short_number(peak_memory_mib(device_), "%.0f"), " MiB; run folder ", config_.train.out));
  }
  return {state_.step, !last};
}

// On several ranks the message says on which, and when.
TrainOutcome Trainer::Implementation::run_telling_where() {
  if (ranks_.size() == 1) return run();
  try {
    return run();
  } catch (const Error& error) {
    fail(error.kind(), error.what());
  } catch (const c10::Error& error) {
    fail(ErrorKind::kEnvironment, error.what_without_backtrace());
  } catch (const std::exception& error) {
    fail(ErrorKind::kEnvironment, error.what());
  }
}

void Trainer::Implementation::fail(ErrorKind kind, const std::string& message) const {
  // All ranks find the same about the numbers: once is enough.
  if (kind == ErrorKind::kNumerical && !ranks_.first()) set_log_level(LogLevel::kOff);
  throw Error(kind, cat("rank ", ranks_.rank(), ", step ", state_.step + 1, ": ", message));
}

Trainer::Trainer(const RunPlan& plan, at::Device device, Ranks& ranks, TrainOptions options)
    : implementation_(std::make_unique<Implementation>(plan, device, ranks, std::move(options))) {}
Trainer::~Trainer() = default;
TrainOutcome Trainer::run() {
  return implementation_->run_telling_where();
}

}  // namespace elf
