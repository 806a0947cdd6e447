// elf-prepare table | statistics | encoder: where the latents come from.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "elf/base/atomic_folder.h"
#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "elf/base/progress.h"
#include "elf/config/enum_names.h"
#include "elf/data/dataset.h"
#include "elf/data/loader.h"
#include "elf/data/masks.h"
#include "elf/model/cooccurrence.h"
#include "elf/model/latent_codec.h"
#include "elf/model/latent_statistics.h"
#include "elf/model/t5.h"
#include "elf/model/token_table.h"
#include "elf/version.h"
#include "prepare.h"

namespace elf::app {
namespace {

using json = nlohmann::json;

struct TableOptions {
  std::string data, kind = "svd", encoder, out;
  int64_t width = 0, window = 4, max_tokens = 100'000'000;
  double context_exponent = 0.75;
  uint64_t seed = 0;
  bool overwrite = false, as_json = false;
};

// The documents of a row, EOS once at the end of each: of a pair, condition and target are two texts.
template <class Use>
void for_each_document(const Dataset& dataset, int64_t row, Use use) {
  const std::vector<int32_t> ids = dataset.tokens(row);
  const auto begin_of_target = ids.begin() + dataset.cond_length(row);
  if (begin_of_target != ids.begin()) use(std::vector<int32_t>(ids.begin(), begin_of_target));
  std::vector<int32_t> target(begin_of_target, ids.end());
  const auto eos = static_cast<int32_t>(dataset.info().eos_id);
  if (target.empty() || target.back() != eos) target.push_back(eos);
  use(target);
}

at::Tensor svd_rows(const Dataset& dataset, const TableOptions& options) {
  const DatasetInfo& info = dataset.info();
  CooccurrenceCounter counter(info.vocab_size, options.window);
  // A long corpus is thinned evenly.
  const int64_t stride =
      options.max_tokens > 0
          ? std::max<int64_t>(1, (info.tokens + options.max_tokens - 1) / options.max_tokens)
          : 1;
  Progress progress("co-occurrences", info.rows, "rows");
  for (int64_t row = 0; row < info.rows; row += stride) {
    for_each_document(dataset, row, [&](const std::vector<int32_t>& document) { counter.add(document); });
    progress.update(row + 1);
  }
  progress.finish();
  if (stride > 1)
    log_info(cat("counted one row of ", stride, ": ", counter.tokens(), " of ", info.tokens, " tokens"));
  log_info(cat("factoring ", counter.pairs().size(), " pairs of ", info.vocab_size, " tokens into width ",
               options.width));
  return ppmi_svd(counter, options.width, options.context_exponent, options.seed);
}

// The embedding table of a T5, cut to the dataset's vocabulary (T5's own has 28 rows beyond its tokenizer).
at::Tensor t5_rows(const DatasetInfo& info, TableOptions& options) {
  if (options.encoder.empty()) usage_error("--kind t5 needs --encoder, the folder of a T5");
  const at::Tensor embedding = load_t5(options.encoder).embedding;
  if (options.width == 0) options.width = embedding.size(1);
  if (options.width != embedding.size(1)) {
    usage_error("--width ", options.width, ": the embeddings of ", options.encoder, " are ",
                embedding.size(1), " wide; leave --width out");
  }
  if (embedding.size(0) < info.vocab_size) {
    usage_error(options.encoder, ": has ", embedding.size(0), " embeddings, ", info.path.string(),
                " a vocabulary of ", info.vocab_size, "; was the text prepared with another tokenizer?");
  }
  return embedding.narrow(0, 0, info.vocab_size);
}

at::Tensor make_table(const Dataset& dataset, TableOptions& options) {
  if (options.kind == "t5") return complete_table(t5_rows(dataset.info(), options), options.seed);
  if (options.width < 2)
    usage_error("--width: found ", options.width,
                ", expected at least 2 (16 for words, 4 to 16 for characters)");
  if (options.kind == "gaussian")
    return gaussian_table(dataset.info().vocab_size, options.width, options.seed);
  return complete_table(svd_rows(dataset, options), options.seed);
}

json describe(const DatasetInfo& info, const TableOptions& options) {
  json made = {{"kind", options.kind},
               {"width", options.width},
               {"vocabulary", info.vocab_size},
               {"seed", options.seed},
               {"tokenizer_hash", info.tokenizer_hash},
               {"dataset_hash", info.data_hash},
               {"elf_version", ELF_VERSION}};
  if (options.kind == "svd") {
    made["options"] = {{"window", options.window},
                       {"context_exponent", options.context_exponent},
                       {"max_tokens", options.max_tokens}};
  }
  if (options.kind == "t5") made["options"] = {{"encoder", options.encoder}};
  return made;
}

void run_table(TableOptions options) {
  // Like datasets: what the same command wrote is replaced, anything else is left alone.
  const bool own = holds_only(options.out, {"table.json", "table.safetensors"});
  AtomicFolder folder(options.out, options.overwrite || own);
  const Dataset dataset = Dataset::open(options.data);
  TokenTable table;
  table.weight = make_table(dataset, options);
  table.made = describe(dataset.info(), options);
  save_token_table(folder.temporary(), table);
  folder.commit();
  if (options.as_json) {
    json result = table.made;
    result["out"] = options.out;
    std::cout << result.dump() << '\n';
  } else {
    std::cout << options.out << ": " << options.kind << " table, " << dataset.info().vocab_size
              << " tokens, width " << options.width << '\n';
  }
}

struct StatisticsOptions {
  std::string data, encoder, table, out, dtype = "float32";
  int64_t tokens_at_once = 16384, max_rows = 0;
  bool as_json = false;
};

LatentStatistics measure(LatentCodec& codec, const Dataset& dataset, const StatisticsOptions& options) {
  const DatasetInfo& info = dataset.info();
  const int64_t length = std::max<int64_t>(1, info.longest_row);
  const int64_t rows = options.max_rows > 0 ? std::min(options.max_rows, info.rows) : info.rows;
  const int64_t batch_rows = std::max<int64_t>(1, options.tokens_at_once / length);
  StatisticsAccumulator accumulator;
  Progress progress("latents", rows, "rows");
  for (int64_t row = 0; row < rows; row += batch_rows) {
    const Batch batch = sequential_batch(dataset, row, std::min(batch_rows, rows - row), length, info.pad_id);
    const at::Tensor latents = codec.encode(batch.ids, encoder_mask(batch.valid_mask, batch.cond_mask));
    const at::Tensor places = batch.valid_mask.flatten().nonzero().squeeze(1).to(latents.device());
    accumulator.add(latents.flatten(0, 1).index_select(0, places));
    progress.update(std::min(row + batch_rows, rows));
  }
  progress.finish();
  return accumulator.result();
}

void run_statistics(const StatisticsOptions& options, const CommonOptions& common) {
  if (options.encoder.empty() == options.table.empty()) usage_error("give one of --encoder and --table");
  const Dataset dataset = Dataset::open(options.data);
  LatentsConfig config;
  config.source = options.table.empty() ? LatentSource::kT5 : LatentSource::kTable;
  config.path = options.table.empty() ? options.encoder : options.table;
  config.mean = 0;
  config.std = 1;
  config.dtype = parse_enum<EncoderDtype>(options.dtype, "--dtype");
  const std::unique_ptr<LatentCodec> codec = make_latent_codec(config, common.device());
  require_tokenizer(*codec, config.path, dataset.info().tokenizer_hash, dataset.info().vocab_size);
  LatentStatistics statistics = measure(*codec, dataset, options);
  if (!std::isfinite(statistics.mean) || !std::isfinite(statistics.std)) {
    numerical_error(config.path, ": gives latents that are not finite for ", options.data);
  }
  statistics.source = codec->source_digest();
  json result = to_json(statistics);
  result["of"] = config.path;
  result["dataset_hash"] = dataset.info().data_hash;
  result["tokenizer_hash"] = dataset.info().tokenizer_hash;
  result["elf_version"] = ELF_VERSION;
  write_file(options.out, result.dump(2) + "\n");
  if (options.as_json) {
    std::cout << result.dump() << '\n';
  } else {
    std::cout << options.out << ": mean " << statistics.mean << ", std " << statistics.std << " over "
              << statistics.positions << " positions of width " << statistics.channel_mean.numel() << '\n';
  }
}

}  // namespace

void add_table_command(Command& app, Commands& commands) {
  auto options = std::make_shared<TableOptions>();
  Command& sub = *app.add_subcommand("table", "A static token table as latent source: a row a token");
  sub.add_option("--data", options->data, "Dataset of `elf-prepare corpus` or `pairs`")->required();
  sub.add_option("--kind", options->kind,
                 "svd: co-occurrences of the data (PPMI, truncated SVD) | gaussian: random rows | t5: a T5's "
                 "embeddings")
      ->one_of({"svd", "gaussian", "t5"})
      ->capture_default_str();
  sub.add_option("--width", options->width, "Width of the rows (latents); t5: the embeddings' own");
  sub.add_option("--seed", options->seed, "Of random rows and of the SVD's start")->capture_default_str();
  sub.add_option("--encoder", options->encoder, "t5: Hugging Face folder");
  sub.add_option("--window", options->window, "svd: furthest neighbour that counts")
      ->between(1, 10)
      ->capture_default_str();
  sub.add_option("--context-exponent", options->context_exponent, "svd: power of the context's frequency")
      ->between(0.0, 1.0)
      ->capture_default_str();
  sub.add_option("--max-tokens", options->max_tokens,
                 "svd: longer data are thinned evenly to about this; 0 = all")
      ->not_negative()
      ->capture_default_str();
  sub.add_option("--out", options->out, "Folder to write: table.safetensors, table.json")->required();
  sub.add_flag("--overwrite", options->overwrite, "Replace a folder that holds something else, too");
  sub.add_flag("--json", options->as_json, "One JSON object to stdout");
  with_examples(sub,
                "  elf-prepare table --data train.h5 --kind svd --width 16 --out table\n"
                "  elf-prepare table --data train.h5 --kind gaussian --width 16 --seed 1 --out table\n"
                "  elf-prepare table --data train.h5 --kind t5 --encoder t5-small --out table");
  commands["table"] = [options](const CommonOptions&) { run_table(*options); };
}

void add_statistics_command(Command& app, Commands& commands) {
  auto options = std::make_shared<StatisticsOptions>();
  Command& sub =
      *app.add_subcommand("statistics", "Mean and standard deviation of a latent source over a dataset");
  sub.add_option("--data", options->data, "Dataset of `elf-prepare corpus` or `pairs`")->required();
  sub.add_option("--encoder", options->encoder, "Hugging Face folder of a T5");
  sub.add_option("--table", options->table, "Folder of `elf-prepare table`");
  sub.add_option("--dtype", options->dtype, "--encoder: float32 or bfloat16, as latents.dtype")
      ->capture_default_str();
  sub.add_option("--max-rows", options->max_rows, "Only the first rows; 0 = all")
      ->not_negative()
      ->capture_default_str();
  sub.add_option("--tokens-at-once", options->tokens_at_once, "Size of a batch, padding included")
      ->positive()
      ->capture_default_str();
  sub.add_option("--out", options->out, "JSON file to write, for `latents.statistics`")->required();
  sub.add_flag("--json", options->as_json, "The same JSON object to stdout");
  with_examples(sub,
                "  elf-prepare statistics --data train.h5 --encoder t5-small --out statistics.json\n"
                "  elf-prepare statistics --data train.h5 --table table --out statistics.json");
  commands["statistics"] = [options](const CommonOptions& common) { run_statistics(*options, common); };
}

}  // namespace elf::app
