// elf-prepare latents: a cache of encoder outputs, with its price told before it is paid.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/base/outputs.h"
#include "elf/base/progress.h"
#include "elf/config/enum_names.h"
#include "elf/data/dataset.h"
#include "elf/data/latent_cache.h"
#include "elf/data/loader.h"
#include "elf/data/masks.h"
#include "elf/model/latent_codec.h"
#include "prepare.h"

namespace elf::app {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct CacheOptions {
  std::string data, encoder, out, dtype = "float32", pad_token, label_drop = "encode";
  int64_t length = 0, rows_at_once = 8;
  bool dry_run = false, as_json = false;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What is to be made, resolved.
struct CachePlan {
  std::shared_ptr<const Dataset> data;
  std::unique_ptr<LatentCodec> codec;
  LatentCacheInfo info;
  bool with_dropped = false;  // the rows a second time, their conditions hidden from the targets
  int64_t rows() const { return data->info().rows * (with_dropped ? 2 : 1); }
};

CachePlan make_plan(const CacheOptions& o, const CommonOptions& common) {
  CachePlan plan;
  plan.data = std::make_shared<const Dataset>(Dataset::open(o.data));
  const DatasetInfo& data = plan.data->info();
  LatentsConfig config;
  config.source = LatentSource::kT5;
  config.path = o.encoder;
  config.mean = 0;
  config.std = 1;
  config.dtype = parse_enum<EncoderDtype>(o.dtype, "--dtype");
  plan.codec = make_latent_codec(config, common.device());
  require_tokenizer(*plan.codec, o.encoder, data.tokenizer_hash, data.vocab_size);
  const bool eos = o.pad_token.empty() ? data.is_pairs() : o.pad_token == "eos";
  plan.info = {.path = o.out,
               .rows = 0,
               .length = o.length > 0 ? o.length : data.max_length,
               .dim = plan.codec->dim(),
               .pad_id = eos ? data.eos_id : data.pad_id,
               .encoder = plan.codec->source_digest(),
               .dtype = o.dtype,
               .data_hash = data.data_hash};
  plan.with_dropped = data.is_pairs() && o.label_drop == "store";
  return plan;
}

// The rows as the encoder reads them.
struct EncodedRows {
  std::vector<uint64_t> keys;
  at::Tensor ids, mask;
};

EncodedRows rows_of(const CachePlan& plan, int64_t first, int64_t count, bool dropped) {
  const Batch batch = sequential_batch(*plan.data, first, count, plan.info.length, plan.info.pad_id);
  const at::Tensor drop = at::full({count}, dropped, at::kBool);
  EncodedRows rows{{}, batch.ids, encoder_mask(batch.valid_mask, batch.cond_mask, drop)};
  rows.keys = latent_keys(rows.ids, rows.mask);
  return rows;
}

// Seconds that the encoder takes for a row: of the second of two batches.
double seconds_of_a_row(const CachePlan& plan, int64_t rows_at_once) {
  const int64_t count = std::min(rows_at_once, plan.data->info().rows);
  double seconds = 0;
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto start = Clock::now();
    const EncodedRows rows = rows_of(plan, 0, count, false);
    plan.codec->encode(rows.ids, rows.mask).sum().item<double>();
    seconds = seconds_since(start);
  }
  return seconds / static_cast<double>(count);
}

// Size and time, before anything is made. Throws when the disk has no room.
Json price(const CachePlan& plan, const CacheOptions& o) {
  const int64_t bytes = latent_cache_bytes(plan.rows(), plan.info.length, plan.info.dim, plan.info.dtype);
  const double row = seconds_of_a_row(plan, o.rows_at_once);
  const auto rows = static_cast<double>(plan.data->info().rows);
  std::filesystem::path folder = std::filesystem::path(o.out).parent_path();
  if (folder.empty()) folder = ".";
  std::error_code none;
  const auto room = std::filesystem::space(folder, none);
  log_info(cat(plan.rows(), " rows of ", plan.info.length, " x ", plan.info.dim, " ", plan.info.dtype,
               ": at most ", bytes >> 20, " MiB; the encoder takes ", std::llround(row * 1e6),
               " us a row, so making it takes about ", duration_text(row * static_cast<double>(plan.rows())),
               " and saves up to ", duration_text(row * rows), " an epoch"));
  if (!none && !o.dry_run && static_cast<int64_t>(room.available) < bytes)
    environment_error(o.out, ": needs ", bytes >> 20, " MiB, but ", room.available >> 20,
                      " MiB are free there");
  return {{"rows", plan.rows()},
          {"bytes", bytes},
          {"seconds_per_row", row},
          {"seconds_to_make", row * static_cast<double>(plan.rows())},
          {"seconds_saved_per_epoch", row * rows}};
}

LatentCacheInfo make_cache(const CachePlan& plan, const CacheOptions& o) {
  LatentCacheWriter writer(o.out, plan.info);
  const int64_t rows = plan.data->info().rows;
  Progress progress("latents", plan.rows(), "rows");
  int64_t done = 0;
  for (int dropped = 0; dropped < (plan.with_dropped ? 2 : 1); ++dropped) {
    for (int64_t first = 0; first < rows; first += o.rows_at_once) {
      const int64_t count = std::min(o.rows_at_once, rows - first);
      const EncodedRows batch = rows_of(plan, first, count, dropped != 0);
      const at::Tensor latents = plan.codec->encode(batch.ids, batch.mask).cpu();
      for (int64_t row = 0; row < count; ++row)
        writer.add(batch.keys[static_cast<size_t>(row)], latents[row]);
      progress.update(done += count);
    }
  }
  progress.finish();
  return writer.finish();
}

void run_latents(const CacheOptions& o, const CommonOptions& common) {
  refuse_overwriting(o.out, {o.data});
  const CachePlan plan = make_plan(o, common);
  Json result = {{"out", o.out}, {"encoder", plan.info.encoder}, {"dtype", o.dtype}};
  result.update(price(plan, o));
  if (!o.dry_run) result["stored"] = make_cache(plan, o).rows;
  if (o.as_json) {
    std::cout << result.dump() << '\n';
  } else if (!o.dry_run) {
    std::cout << o.out << ": latents of " << result["stored"] << " different rows, " << plan.info.length
              << " x " << plan.info.dim << " " << o.dtype << "; name it as latents.cache\n";
  }
}

}  // namespace

void add_latents_command(Command& app, Commands& commands) {
  const auto options = std::make_shared<CacheOptions>();
  Command& sub = *app.add_subcommand(
      "latents", "Encoder outputs of a dataset, computed once: training reads them in place of the encoder");
  sub.add_option("--data", options->data, "Dataset of `elf-prepare corpus` or `pairs`")->required();
  sub.add_option("--encoder", options->encoder, "Hugging Face folder of a T5")->required();
  sub.add_option("--dtype", options->dtype,
                 "float32 or bfloat16: of the encoder's arithmetic and of what is stored, as latents.dtype")
      ->capture_default_str();
  sub.add_option("--length", options->length, "data.max_length of the run; 0 = the dataset's")
      ->not_negative()
      ->capture_default_str();
  sub.add_option("--pad-token", options->pad_token,
                 "flow.pad_token of the run (default: pairs eos, documents pad)")
      ->one_of({"pad", "eos"});
  sub.add_option("--label-drop", options->label_drop,
                 "Pairs whose condition is dropped have other latents: store them too (twice the size), or "
                 "encode such rows in training")
      ->one_of({"store", "encode"})
      ->capture_default_str();
  sub.add_option("--rows-at-once", options->rows_at_once, "Rows of a batch")
      ->positive()
      ->capture_default_str();
  sub.add_option("--out", options->out, "HDF5 file to write, for `latents.cache`")->required();
  sub.add_flag("--dry-run", options->dry_run, "Only tell its size and the time it saves");
  sub.add_flag("--json", options->as_json, "One JSON object to stdout");
  with_examples(
      sub,
      "  elf-prepare latents --data train.h5 --encoder t5-small --out latents.h5 --dry-run\n"
      "  elf-prepare latents --data train.h5 --encoder t5-small --dtype bfloat16 --label-drop store "
      "--out latents.h5");
  commands["latents"] = [options](const CommonOptions& common) { run_latents(*options, common); };
}

}  // namespace elf::app
