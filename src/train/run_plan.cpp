#include "elf/train/run_plan.h"

#include <algorithm>
#include <cmath>

#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/dist/launch.h"
#include "elf/model/weight_map.h"
#include "elf/train/memory_estimate.h"

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

std::shared_ptr<const Dataset> open_dataset(const std::string& path, const SentencePieceTokenizer* tokenizer,
                                            RunConfig& config) {
  auto dataset = std::make_shared<const Dataset>(Dataset::open(path));
  if (tokenizer != nullptr) dataset->require_tokenizer(tokenizer->hash(), tokenizer->size());
  resolve_length(config.data.max_length, dataset->info().max_length, "data.max_length", path);
  resolve_length(config.data.max_input_length, dataset->info().max_input_length, "data.max_input_length",
                 path);
  return dataset;
}

// Opens what is there. Without it: an error, or with `may_be_missing` an entry of plan.missing.
void open_data(RunPlan& plan, bool may_be_missing) {
  RunConfig& config = plan.config;
  const auto present = [&](const char* key, const std::string& path, const char* what) {
    if (there(path)) return true;
    if (!may_be_missing && path.empty()) usage_error(key, " is not set: name ", what);
    if (!may_be_missing) return true;  // opening it says what is wrong
    plan.missing.push_back(path.empty() ? cat(key, ": not set") : cat(key, " ", path, ": no such file"));
    return false;
  };
  if (present("data.tokenizer", config.data.tokenizer, "the tokenizer that the dataset was prepared with")) {
    plan.tokenizer =
        std::make_shared<const SentencePieceTokenizer>(SentencePieceTokenizer::load(config.data.tokenizer));
    if (config.model.vocab_size == 0) config.model.vocab_size = plan.tokenizer->size();
    if (config.model.vocab_size < plan.tokenizer->size()) {
      usage_error("model.vocab_size is ", config.model.vocab_size, ", but the tokenizer ",
                  config.data.tokenizer, " has ", plan.tokenizer->size(), " ids");
    }
  }
  if (present("data.train", config.data.train, "a dataset that elf-prepare wrote"))
    plan.train = open_dataset(config.data.train, plan.tokenizer.get(), config);
  if (!config.data.valid.empty() && present("data.valid", config.data.valid, ""))
    plan.valid = open_dataset(config.data.valid, plan.tokenizer.get(), config);
  if (!may_be_missing) return;
  if (config.latents.source != LatentSource::kLearned) present("latents.path", config.latents.path, "");
  if (!config.latents.decoder.empty()) present("latents.decoder", config.latents.decoder, "");
}

}  // namespace

RunPlan plan_run(const RunConfig& given, bool data_may_be_missing) {
  RunPlan plan;
  plan.config = given;
  RunConfig& config = plan.config;
  validate(config);
  open_data(plan, data_may_be_missing);
  if (config.model.max_length == 0) config.model.max_length = config.data.max_length;
  if (config.model.max_length < config.data.max_length) {
    usage_error("model.max_length is ", config.model.max_length, ", less than the sequences' ",
                config.data.max_length);
  }
  if (config.model.vocab_size == 0 || config.model.max_length == 0) {
    std::string missing;
    for (const std::string& one : plan.missing) missing += "\n  " + one;
    usage_error(config.model.vocab_size == 0 ? "model.vocab_size" : "data.max_length",
                " is not known: set it, or prepare what is missing (elf-prepare --help):", missing);
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
  plan.memory_gib = estimate_memory(config, plan.parameters, read_launch().size).gib();
  return plan;
}

}  // namespace elf
