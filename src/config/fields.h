// The one list of every key: name, member, rule, meaning. Reading, --set, dumping, describing and range
// checks all walk it. A visitor has operator()(key, member, rule, help) and section(name, struct, help),
// which calls fields() when it wants to go in.
#pragma once

#include <limits>

#include "elf/config/run_config.h"

namespace elf::config {

// What a value must keep to besides its type.
struct Rule {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool open_min = false, open_max = false;  // the end itself is excluded
  bool path = false;                        // a file or folder, relative to the file that names it
};

inline Rule any() {
  return {};
}
inline Rule path() {
  return {.path = true};
}
inline Rule at_least(double min) {
  return {.min = min};
}
inline Rule above(double min) {
  return {.min = min, .open_min = true};
}
inline Rule between(double min, double max) {
  return {.min = min, .max = max};
}
inline Rule strictly_between(double min, double max) {
  return {.min = min, .max = max, .open_min = true, .open_max = true};
}
inline Rule from_below(double min, double max) {
  return {.min = min, .max = max, .open_max = true};
}

inline Rule above_to(double min, double max) {
  return {.min = min, .max = max, .open_min = true};
}

// Far beyond what anyone trains, near enough that a slip of the finger is told at once and not by a machine
// that runs out of memory or time.
inline constexpr double kMostBlocks = 1024, kWidest = 65'536, kMostTokens = 1 << 24, kLongest = 1 << 20,
                        kMostRows = 1 << 20, kMostSteps = 1e9, kMostEpochs = 1e6;

template <class V>
void fields(V& v, ModelConfig& c) {
  v("preset", c.preset, any(),
    "name of a preset below, which fills depth, hidden_size and num_heads; empty = none");
  v("depth", c.depth, between(1, kMostBlocks), "transformer blocks");
  v("hidden_size", c.hidden_size, between(2, kWidest), "hidden width H");
  v("num_heads", c.num_heads, between(1, kWidest), "attention heads; divides hidden_size into an even width");
  v("latent_dim", c.latent_dim, between(1, kWidest),
    "latent width D, that of the encoder or table (T5-small: 512)");
  v("bottleneck_dim", c.bottleneck_dim, between(1, kWidest), "width between latents and H");
  v("vocab_size", c.vocab_size, between(0, kMostTokens),
    "0 = that of the tokenizer, extra ids included (T5: 32100)");
  v("max_length", c.max_length, between(0, kLongest), "longest sequence L; 0 = that of the dataset");
  v("mlp_ratio", c.mlp_ratio, above_to(0, 64), "SwiGLU inner width = int(int(H * mlp_ratio) * 2 / 3)");
  v("num_time_tokens", c.num_time_tokens, between(0, 1024), "prefix tokens that carry the flow time t");
  v("num_self_cond_cfg_tokens", c.num_self_cond_cfg_tokens, between(0, 1024),
    "prefix tokens that carry the self-condition guidance scale w; 0 = the network has no such input");
  v("num_model_mode_tokens", c.num_model_mode_tokens, between(0, 1024),
    "prefix tokens that carry denoise or decode mode");
  v("conditioning", c.conditioning, any(),
    "how t, w and the mode reach the network: prefix tokens, or scales, shifts and gates of every block that "
    "start at zero");
  v("prediction", c.prediction, any(),
    "what the denoise head gives: the latents, the velocity x - noise, or the noise; the loss is in "
    "velocities for all three");
  v("dropout", c.dropout, from_below(0, 1), "probability in the middle blocks; 0 in all published runs");
}

template <class V>
void fields(V& v, LatentsConfig& c) {
  v("source", c.source, any(),
    "frozen T5 encoder; frozen table with a row a token; or a table that is trained, the network's "
    "unembedding with normalised rows");
  v("path", c.path, path(),
    "t5: a Hugging Face folder; table: what `elf-prepare table` wrote; learned: empty");
  v("mean", c.mean, any(), "latents = (encoder output - mean) / std");
  v("std", c.std, above(0), "0.2 in all published runs; tables are made with mean 0 and std 1");
  v("statistics", c.statistics, path(),
    "a file of `elf-prepare statistics`: mean and std per channel in place of the two numbers; empty = none");
  v("dtype", c.dtype, any(), "arithmetic of the T5 encoder; float16 is refused, as T5 overflows in it");
  v("cache", c.cache, path(),
    "a file of `elf-prepare latents`: outputs of the T5 encoder for the training data; empty = none");
  v("decoder", c.decoder, path(),
    "run, checkpoint or model directory of a network that reads the tokens off in place of this one's decode "
    "branch; empty = none");
}

template <class V>
void fields(V& v, DataConfig& c) {
  v("train", c.train, path(), "HDF5 dataset of elf-prepare");
  v("valid", c.valid, path(), "the same, held out; empty = no validation");
  v("tokenizer", c.tokenizer, path(), "SentencePiece model (or its folder) that the datasets were made with");
  v("max_length", c.max_length, between(0, kLongest),
    "tokens of a sequence, condition included; 0 = the dataset's");
  v("max_input_length", c.max_input_length, between(0, kLongest),
    "longest condition of pairs; 0 = the dataset's");
}

template <class V>
void fields(V& v, FlowConfig& c) {
  v("time_schedule", c.time_schedule, any(), "distribution of t in training");
  v("denoiser_p_mean", c.denoiser_p_mean, any(), "t = sigmoid(N(mean, std^2))");
  v("denoiser_p_std", c.denoiser_p_std, at_least(0), "see denoiser_p_mean");
  v("denoiser_noise_scale", c.denoiser_noise_scale, above(0), "s in z = t x + (1 - t) s eps");
  v("t_eps", c.t_eps, strictly_between(0, 1), "floor of 1 - t in velocities");
  v("decoder_prob", c.decoder_prob, between(0, 1), "probability of the decode branch");
  v("decoder_noise_scale", c.decoder_noise_scale, at_least(0),
    "noise of the decode branch: 5 on OpenWebText, 1 on WMT14 and XSum");
  v("decoder_p_mean", c.decoder_p_mean, any(),
    "share of the clean latent per token p = sigmoid(N(mean, std^2))");
  v("decoder_p_std", c.decoder_p_std, at_least(0), "see decoder_p_mean");
  v("decoder_mask_prob", c.decoder_mask_prob, between(0, 1),
    "share of tokens of which the decode branch sees noise only (0.2 published for a decoder trained apart)");
  v("self_cond_prob", c.self_cond_prob, between(0, 1), "0 = no self-conditioning");
  v("self_cond_cfg_min", c.self_cond_cfg_min, above(0),
    "w is log-uniform in 1 + w from here; above 0, as 1/w is used");
  v("self_cond_cfg_max", c.self_cond_cfg_max, above(0), "... to here");
  v("label_drop_prob", c.label_drop_prob, between(0, 1),
    "pairs: how often the condition is hidden (0.1 published)");
  v("pad_token", c.pad_token, any(),
    "pad: padding stays out of the loss; eos: padding is EOS and is learned");
  v("branch", c.branch, any(), "denoise or decode: drawn by each row, or once a step");
  v("decode_condition", c.decode_condition, any(),
    "condition in the decode branch: corrupted (published) or clean");
}

template <class V>
void fields(V& v, OptimizerConfig& c) {
  v("kind", c.kind, any(), "muon: Muon for matrices and Nesterov Adam for the rest; adamw: AdamW for all");
  v("blr", c.blr, between(0, 100), "learning rate for 256 rows: lr = blr * global_batch_size / 256 ...");
  v("lr", c.lr, between(0, 100), "... unless this is above 0: then it is taken as it is");
  v("schedule", c.schedule, any(), "after the warm-up: constant, or down to min_lr by a cosine or a line");
  v("min_lr", c.min_lr, between(0, 100), "where cosine and linear end");
  v("warmup_steps", c.warmup_steps, between(0, kMostSteps), "linear warm-up from 0, in optimiser steps");
  v("warmup_epochs", c.warmup_epochs, between(0, kMostEpochs),
    "the same in epochs; used when warmup_steps is 0");
  v("grad_clip", c.grad_clip, at_least(0), "largest global norm of the gradient; 0 = no clipping");
  v("weight_decay", c.weight_decay, at_least(0), "decoupled; AdamW only");
  v("adam_b1", c.adam_b1, from_below(0, 1), "AdamW only; the companion of Muon always has 0.9 and 0.999");
  v("adam_b2", c.adam_b2, from_below(0, 1), "AdamW only");
  v("muon_momentum", c.muon_momentum, from_below(0, 1), "Muon only");
  v("ema_decay", c.ema_decay, from_below(0, 1), "of the averaged weights, which sampling uses");
  v("ema_warmup", c.ema_warmup, any(),
    "decay of step k is min(ema_decay, (1 + k) / (10 + k)): for short runs");
}

template <class V>
void fields(V& v, TrainConfig& c) {
  v("objective", c.objective, any(), "flow: learn from data; distillation: learn few steps from a teacher");
  v("init_from", c.init_from, path(),
    "run, checkpoint or model directory whose averaged weights are the first ones; empty = random, or the "
    "teacher's");
  v("out", c.out, any(), "run folder, relative to the working directory");
  v("seed", c.seed, at_least(0), "all randomness follows from it");
  v("global_batch_size", c.global_batch_size, between(1, kMostRows), "rows of one optimiser step");
  v("micro_batch_size", c.micro_batch_size, between(0, kMostRows),
    "rows of one forward, at most global_batch_size; 0 = all at once. The result does not depend on it");
  v("epochs", c.epochs, between(0, kMostEpochs), "length of the run, unless steps or minutes is given");
  v("steps", c.steps, between(0, kMostSteps), "above 0: this many optimiser steps");
  v("minutes", c.minutes, between(0, 1'000'000), "above 0: as many steps as fit, measured on the first ones");
  v("log_every", c.log_every, between(1, kMostSteps), "steps between lines of metrics");
  v("valid_every", c.valid_every, between(0, kMostSteps), "steps between validations; 0 = only at the end");
  v("valid_batches", c.valid_batches, between(0, kMostSteps), "0 = the whole validation set");
  v("save_every", c.save_every, between(0, kMostSteps), "steps between checkpoints; 0 = only at the end");
  v("save_in_background", c.save_in_background, any(), "while training goes on, where memory allows");
  v("keep_last", c.keep_last, between(1, kMostSteps), "checkpoints kept beside the best");
  v("keep_every", c.keep_every, between(0, kMostSteps),
    "above 0: checkpoints of steps that this divides stay as well");
  v("best_metric", c.best_metric, any(),
    "what `best` is the best by: a figure of validation (valid_loss), of samples (sample_entropy) or of the "
    "hook (gen_ppl, bleu, ...); losses, perplexities and error rates are better when lower");
  v("best_min_entropy", c.best_min_entropy, at_least(0),
    "nothing with a sample_entropy below is best; required above 0 when best_metric is a perplexity of "
    "samples");
  v("patience", c.patience, between(0, kMostSteps),
    "above 0: end after so many validations in a row without a new best");
  v("max_skipped_steps", c.max_skipped_steps, between(1, kMostSteps),
    "non-finite steps in a row that end the run");
  v("spike_factor", c.spike_factor, at_least(0), "report a loss so many times its running mean; 0 = never");
  v("sample_every", c.sample_every, between(0, kMostSteps),
    "steps between samples and their scores; 0 = none");
  v("sample_count", c.sample_count, between(1, kMostRows), "how many of them");
  v("hook", c.hook, any(),
    "shell command that the first rank runs after each checkpoint; a JSON object on its last line is logged");
  v("tensorboard", c.tensorboard, any(), "write event files for TensorBoard");
  v("stop_signals", c.stop_signals, any(),
    "names of the signals that save and end the run with exit code 85, besides INT");
  v("collective_timeout", c.collective_timeout, above(0), "seconds that ranks wait for each other");
  v("first_rank_timeout", c.first_rank_timeout, above(0),
    "seconds that they wait for work of the first rank alone: saving, sampling");
  v("precision", c.precision, any(),
    "auto: bf16 on CUDA, float32 elsewhere; bf16: blocks in bfloat16, all else in float32");
  v("tf32", c.tf32, any(), "CUDA: float32 matrix products may round their inputs to TF32");
  v("recompute", c.recompute, any(),
    "blocks run again in the backward pass: less memory, more time, the same result");
}

template <class V>
void fields(V& v, SamplingConfig& c) {
  v("sampler", c.sampler, any(),
    "sde: stochastic; ode: Euler steps; heun: second order, two predictions a step; multistep: second order, "
    "one a step");
  v("steps", c.steps, between(1, kMostSamplingSteps),
    "steps before the decode: one prediction each (heun: two, but for the last)");
  v("gamma", c.gamma, between(0, 1000), "noise put back by each SDE step; 0 = the ODE");
  v("sde_update", c.sde_update, any(),
    "an SDE step moves the state put back towards noise (published code) or the one before that (paper)");
  v("self_cond_cfg", c.self_cond_cfg, between(-1000, 1000),
    "w: 3 for unconditional, 1 for conditional tasks");
  v("cfg", c.cfg, between(-1000, 1000), "guidance on the condition; 1 = none, 2 published");
  v("self_cond_cfg_schedule", c.self_cond_cfg_schedule, any(),
    "w by time: \"0:1,0.5:3\" (linear between) or \"3@0.2-0.8\" (1 elsewhere); empty = self_cond_cfg");
  v("cfg_schedule", c.cfg_schedule, any(), "the same for cfg");
  v("time_schedule", c.time_schedule, any(),
    "sorted random draws, an even grid, or the quantiles of the logit-normal");
  v("times", c.times, any(),
    "own rising times, \"0.1,0.3,0.7\", in place of steps and time_schedule; empty = none");
  v("p_mean", c.p_mean, any(), "of the logit-normal grids");
  v("p_std", c.p_std, above(0), "of the logit-normal grids");
  v("seed", c.seed, at_least(0), "sample i depends on (model, settings, seed, i) only");
  v("batch_size", c.batch_size, between(1, kMostRows),
    "rows at a time, at most; the result does not depend on it");
  v("cuda_graph", c.cuda_graph, any(),
    "on CUDA a network call is recorded once and replayed at every step: the same result, sooner");
}

template <class V>
void fields(V& v, DistillationConfig& c) {
  v("teacher", c.teacher, path(),
    "run, checkpoint or model directory; its averaged weights teach every round");
  v("student_steps", c.student_steps, at_least(1),
    "one round each, in a folder of its own; a round starts from the one before. One round alone is "
    "train.out itself");
  v("teacher_steps", c.teacher_steps, at_least(1),
    "steps of the teacher inside one step of the student, by round");
  v("student_schedule", c.student_schedule, any(), "distribution of where a student's step begins");
  v("teacher_schedule", c.teacher_schedule, any(), "distribution of the teacher's times inside that step");
  v("gamma", c.gamma, at_least(0),
    "sampling.gamma by round: a value a round, one for all, or none to keep that of `sampling:`");
  v("self_cond_cfg", c.self_cond_cfg, any(), "sampling.self_cond_cfg by round, in the same way");
  v("eval_samples", c.eval_samples, at_least(0),
    "texts of each row of the table that ends the rounds; 0 = no table");
  v("eval_text", c.eval_text, path(),
    "the training text, a text a line: the table then has the perplexity under an n-gram model of it");
}

template <class V>
void sections(V& v, RunConfig& c) {
  v.section("model", c.model, "sizes of the network");
  v.section("latents", c.latents, "where the latents come from");
  v.section("data", c.data, "datasets and their tokenizer");
  v.section("flow", c.flow, "noise, guidance and the two branches of the objective");
  v.section("optimizer", c.optimizer, "update rule, learning rate, averaging");
  v.section("train", c.train, "how long, how much at a time, what is logged and saved");
  v.section("distillation", c.distillation, "few-step students; read when train.objective is distillation");
  v.section("sampling", c.sampling, "how elf-sample draws; the defaults are those published for OpenWebText");
}

}  // namespace elf::config
