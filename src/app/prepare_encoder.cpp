// elf-prepare encoder: a T5 trained from scratch on the data, or left random.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "elf/base/atomic_folder.h"
#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/base/log.h"
#include "elf/data/dataset.h"
#include "elf/model/t5.h"
#include "elf/text/sentencepiece_tokenizer.h"
#include "elf/train/encoder_pretraining.h"
#include "elf/version.h"
#include "prepare.h"

namespace elf::app {
namespace {

using json = nlohmann::json;

struct EncoderOptions {
  std::string data, tokenizer, preset = "t5-mini", out;
  int64_t d_model = 0, d_kv = 0, d_ff = 0, layers = 0, heads = 0,
          vocab_size = 0;  // 0 = the preset's, the data's
  bool gated = false, overwrite = false, as_json = false;
  EncoderPretrainingConfig training;
};

T5Config model_config(const EncoderOptions& options, const std::optional<Dataset>& dataset) {
  T5Config config = t5_preset(options.preset);
  if (options.d_model > 0) config.d_model = options.d_model;
  if (options.d_kv > 0) config.d_kv = options.d_kv;
  if (options.d_ff > 0) config.d_ff = options.d_ff;
  if (options.layers > 0) config.num_layers = config.num_decoder_layers = options.layers;
  if (options.heads > 0) config.num_heads = options.heads;
  config.gated = options.gated;
  if (dataset) config.vocab_size = dataset->info().vocab_size;
  if (options.vocab_size > 0) config.vocab_size = options.vocab_size;
  if (dataset && config.vocab_size < dataset->info().vocab_size) {
    usage_error("--vocab-size ", options.vocab_size, ": the data have a vocabulary of ",
                dataset->info().vocab_size);
  }
  return config;
}

// How many sentinels the tokenizer of the data has: from the tokenizer itself when it is given, else from
// what the dataset says.
int64_t count_sentinels(const DatasetInfo& info, const std::optional<SentencePieceTokenizer>& tokenizer) {
  int64_t count = -1;
  if (tokenizer) {
    count = tokenizer->extra_ids();
  } else {
    const json settings = parse_json(info.settings);
    if (settings.is_object() && settings.contains("extra_ids") && settings["extra_ids"].is_number_integer()) {
      count = settings["extra_ids"].get<int64_t>();
    }
  }
  if (count < 0)
    usage_error(info.path.string(), ": does not say how many extra ids its tokenizer has; give --tokenizer");
  if (count == 0) {
    usage_error(info.path.string(),
                ": its tokenizer has no extra ids, which mark the hidden stretches; make one with "
                "`elf-prepare tokenizer --extra-ids 100` and ",
                "prepare the data again");
  }
  return count;
}

std::optional<Dataset> open_data(const EncoderOptions& options) {
  if (!options.data.empty()) return Dataset::open(options.data);
  if (options.training.steps > 0) usage_error("--data is needed to train; a random encoder is --steps 0");
  return std::nullopt;
}

json describe(const EncoderOptions& options, const std::optional<Dataset>& dataset,
              const EncoderPretrainingReport& report) {
  const EncoderPretrainingConfig& training = options.training;
  json made = {{"preset", options.preset},
               {"steps", training.steps},
               {"seed", training.seed},
               {"elf_version", ELF_VERSION}};
  if (dataset) {
    made["tokenizer_hash"] = dataset->info().tokenizer_hash;
    made["dataset_hash"] = dataset->info().data_hash;
  }
  if (training.steps > 0) {
    made["batch"] = training.batch;
    made["lr"] = training.lr;
    made["warmup"] = training.warmup;
    made["weight_decay"] = training.weight_decay;
    made["noise_share"] = training.corruption.noise_share;
    made["mean_span"] = training.corruption.mean_span;
    made["first_loss"] = report.first_loss;
    made["last_loss"] = report.last_loss;
    made["tokens_per_second"] = report.tokens_per_second;
  }
  return made;
}

void run_encoder(EncoderOptions options, const CommonOptions& common) {
  // Like datasets: what the same command wrote is replaced, anything else is left alone.
  const bool own = holds_only(options.out, {"config.json", "model.safetensors", "pretraining.json"});
  AtomicFolder folder(options.out, options.overwrite || own);
  const std::optional<Dataset> dataset = open_data(options);
  std::optional<SentencePieceTokenizer> tokenizer;
  if (!options.tokenizer.empty()) {
    tokenizer = SentencePieceTokenizer::load(options.tokenizer);
    if (dataset) dataset->require_tokenizer(tokenizer->hash(), tokenizer->size());
  }
  T5Model model = random_t5(model_config(options, dataset), options.training.seed);
  EncoderPretrainingReport report;
  if (options.training.steps > 0) {
    SpanCorruption& corruption = options.training.corruption;
    corruption.sentinels = count_sentinels(dataset->info(), tokenizer);
    corruption.first_sentinel = static_cast<int32_t>(dataset->info().vocab_size -
                                                     1);  // <extra_id_0> is the last id, the others descend
    corruption.eos_id = static_cast<int32_t>(dataset->info().eos_id);
    report = pretrain_encoder(model, *dataset, options.training, common.device());
  }
  const json made = describe(options, dataset, report);
  save_t5(folder.temporary(), model);
  write_file(folder.temporary() / "pretraining.json", made.dump(2) + "\n");
  if (tokenizer) tokenizer->save(folder.temporary());
  folder.commit();
  if (options.as_json) {
    json result = made;
    result["out"] = options.out;
    std::cout << result.dump() << '\n';
    return;
  }
  std::cout << options.out << ": T5 encoder of width " << model.config.d_model << ", "
            << model.config.num_layers << " blocks, " << options.training.steps << " steps";
  if (options.training.steps > 0) std::cout << ", loss " << report.first_loss << " -> " << report.last_loss;
  std::cout << '\n';
}

void add_sizes(Command& sub, EncoderOptions& options) {
  sub.add_option("--preset", options.preset, "Sizes to start from")
      ->one_of(t5_preset_names())
      ->capture_default_str();
  sub.add_option("--d-model", options.d_model, "Width of the latents")->positive();
  sub.add_option("--d-kv", options.d_kv, "Width of a head")->positive();
  sub.add_option("--d-ff", options.d_ff, "Width of the feed-forward layer")->positive();
  sub.add_option("--layers", options.layers, "Blocks of encoder and of decoder")->positive();
  sub.add_option("--heads", options.heads, "Attention heads")->positive();
  sub.add_option("--vocab-size", options.vocab_size,
                 "Embeddings; default: the data's vocabulary, or 32128 without data")
      ->positive();
  sub.add_flag("--gated", options.gated, "Gated GELU (T5 v1.1) in place of ReLU");
}

void add_training(Command& sub, EncoderPretrainingConfig& training) {
  sub.add_option("--steps", training.steps, "Optimiser steps; 0 = a random encoder")
      ->not_negative()
      ->capture_default_str();
  sub.add_option("--batch", training.batch, "Texts a step")->positive()->capture_default_str();
  sub.add_option("--lr", training.lr, "Peak learning rate (AdamW, cosine)")
      ->positive()
      ->capture_default_str();
  sub.add_option("--warmup", training.warmup, "Steps of warm-up")->not_negative()->capture_default_str();
  sub.add_option("--weight-decay", training.weight_decay, "Decoupled")->not_negative()->capture_default_str();
  sub.add_option("--noise-share", training.corruption.noise_share, "Share of the tokens that is hidden")
      ->between(0.01, 0.99)
      ->capture_default_str();
  sub.add_option("--mean-span", training.corruption.mean_span, "Tokens of a hidden stretch, on average")
      ->between(1.0, 100.0)
      ->capture_default_str();
  sub.add_option("--seed", training.seed, "Of weights, order and stretches")->capture_default_str();
}

}  // namespace

void add_encoder_command(Command& app, Commands& commands) {
  auto options = std::make_shared<EncoderOptions>();
  Command& sub = *app.add_subcommand(
      "encoder", "A contextual encoder from scratch: T5 by span corruption, saved as a Hugging Face folder");
  sub.add_option("--data", options->data, "Dataset of `elf-prepare corpus` or `pairs`");
  sub.add_option("--tokenizer", options->tokenizer, "The data's tokenizer; saved beside the weights");
  add_sizes(sub, *options);
  add_training(sub, options->training);
  sub.add_option("--out", options->out, "Folder to write: config.json, model.safetensors, pretraining.json")
      ->required();
  sub.add_flag("--overwrite", options->overwrite, "Replace a folder that holds something else, too");
  sub.add_flag("--json", options->as_json, "One JSON object to stdout");
  with_examples(sub,
                "  elf-prepare encoder --data train.h5 --preset t5-nano --steps 2000 --out encoder\n"
                "  elf-prepare encoder --preset t5-small --steps 0 --out random-t5-small      # to try sizes "
                "without weights");
  commands["encoder"] = [options](const CommonOptions& common) { run_encoder(*options, common); };
}

}  // namespace elf::app
