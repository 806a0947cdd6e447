#include "elf/train/run_plan.h"

#include <algorithm>
#include <cmath>

#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/model/weight_map.h"

namespace elf {
namespace fs = std::filesystem;
namespace {

bool there(const std::string& path) {
  std::error_code error;
  return !path.empty() && fs::exists(path, error);
}

// `value` of the configuration (0 = take the dataset's), which the dataset must allow.
void resolve_length(int64_t& value, int64_t of_dataset, const char* key, const std::string& file) {
  if (value == 0) value = of_dataset;
  if (value < of_dataset) {
    usage_error(key, " is ", value, ", but ", file, " holds sequences prepared for ", of_dataset,
                "; prepare it again with that length or raise the key");
  }
}

std::shared_ptr<const Dataset> open_dataset(const std::string& path, const SentencePieceTokenizer& tokenizer,
                                            RunConfig& config) {
  auto dataset = std::make_shared<const Dataset>(Dataset::open(path));
  dataset->require_tokenizer(tokenizer.hash(), tokenizer.size());
  resolve_length(config.data.max_length, dataset->info().max_length, "data.max_length", path);
  resolve_length(config.data.max_input_length, dataset->info().max_input_length, "data.max_input_length",
                 path);
  return dataset;
}

// Rough, from the tensors that live at the same time in a step: per block and token about 12 H + 3 inner
// floats are kept for the backward pass.
double estimate_memory(const RunConfig& config, int64_t parameters) {
  const ModelConfig& model = config.model;
  const int64_t rows = config.train.micro_batch_size > 0
                           ? std::min(config.train.micro_batch_size, config.train.global_batch_size)
                           : config.train.global_batch_size;
  const auto tokens =
      static_cast<double>(rows * (model.max_length + model.num_time_tokens + model.num_self_cond_cfg_tokens +
                                  model.num_model_mode_tokens));
  const auto hidden = static_cast<double>(model.hidden_size);
  const double inner = hidden * model.mlp_ratio * 2 / 3;
  const double activations = tokens * (static_cast<double>(model.depth) * (12 * hidden + 3 * inner) +
                                       14 * static_cast<double>(model.latent_dim));
  const double logits =
      2 * config.flow.decoder_prob * static_cast<double>(rows * model.max_length * model.vocab_size);
  const double states =
      config.optimizer.kind == OptimizerKind::kMuon ? 4.2 : 5;  // weights, gradients, momenta, averages
  return (states * static_cast<double>(parameters) + activations + logits) * 4 / (1024.0 * 1024 * 1024) + 0.3;
}

}  // namespace

RunPlan plan_run(const RunConfig& given, bool data_may_be_missing) {
  RunPlan plan;
  plan.config = given;
  RunConfig& config = plan.config;
  validate(config);
  if (there(config.data.tokenizer) || !data_may_be_missing) {
    if (config.data.tokenizer.empty())
      usage_error("data.tokenizer is not set: name the tokenizer that the dataset was prepared with");
    plan.tokenizer =
        std::make_shared<const SentencePieceTokenizer>(SentencePieceTokenizer::load(config.data.tokenizer));
    if (config.model.vocab_size == 0) config.model.vocab_size = plan.tokenizer->size();
    if (config.model.vocab_size < plan.tokenizer->size()) {
      usage_error("model.vocab_size is ", config.model.vocab_size, ", but the tokenizer ",
                  config.data.tokenizer, " has ", plan.tokenizer->size(), " ids");
    }
    if (there(config.data.train) || !data_may_be_missing) {
      if (config.data.train.empty())
        usage_error("data.train is not set: name a dataset that elf-prepare wrote");
      plan.train = open_dataset(config.data.train, *plan.tokenizer, config);
    }
    if (!config.data.valid.empty() && (there(config.data.valid) || !data_may_be_missing)) {
      plan.valid = open_dataset(config.data.valid, *plan.tokenizer, config);
    }
  }
  if (config.model.max_length == 0) config.model.max_length = config.data.max_length;
  if (config.model.max_length < config.data.max_length) {
    usage_error("model.max_length is ", config.model.max_length, ", less than the sequences' ",
                config.data.max_length);
  }
  if (config.model.vocab_size == 0 || config.model.max_length == 0) {
    usage_error(
        "the dataset is not there, and model.vocab_size or data.max_length is not set; prepare the data "
        "first: elf-prepare --help");
  }

  plan.parameters = parameter_count(config.model);
  if (plan.train)
    plan.steps_per_epoch =
        static_cast<double>(plan.train->info().rows) / static_cast<double>(config.train.global_batch_size);
  if (config.train.steps > 0) {
    plan.steps = config.train.steps;
  } else if (config.train.minutes == 0) {
    plan.steps = static_cast<int64_t>(std::llround(config.train.epochs * plan.steps_per_epoch));
    if (plan.train && plan.steps == 0)
      usage_error("train.epochs ", config.train.epochs,
                  " is less than one step on this dataset; raise it or set train.steps");
  }
  plan.tokens = static_cast<double>(plan.steps * config.train.global_batch_size * config.data.max_length);
  plan.memory_gib = estimate_memory(config, plan.parameters);
  return plan;
}

}  // namespace elf
