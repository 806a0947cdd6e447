#include "elf/train/cached_codec.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/config/enum_names.h"

namespace elf {
namespace {

template <class T>
void require_equal(const LatentCacheInfo& cache, const char* what, const T& of_cache, const T& of_run) {
  if (of_cache == of_run) return;
  usage_error(
      cache.path.string(), ": was made with ", what, " ", of_cache, ", but the run has ", of_run,
      "; make it again with elf-prepare latents (--dtype, --length, --pad-token as in the run), or leave "
      "latents.cache out");
}

}  // namespace

CachedCodec::CachedCodec(std::unique_ptr<LatentCodec> codec, LatentCache cache)
    : codec_(std::move(codec)), cache_(std::move(cache)) {
  require_equal(cache_.info(), "the encoder", cache_.info().encoder, codec_->source_digest());
  require_equal(cache_.info(), "latents of width", cache_.info().dim, codec_->dim());
}

at::Tensor CachedCodec::encode(const at::Tensor& ids, const at::Tensor& mask) {
  const at::NoGradGuard no_gradients;
  if (ids.size(1) != cache_.info().length) {
    encoded_ += ids.size(0);
    return codec_->encode(ids, mask);
  }
  const std::vector<uint64_t> keys = latent_keys(ids, mask);
  std::vector<uint64_t> found;
  std::vector<int64_t> there, missing;
  for (size_t row = 0; row < keys.size(); ++row) {
    const bool known = cache_.contains(keys[row]);
    if (known) found.push_back(keys[row]);
    (known ? there : missing).push_back(static_cast<int64_t>(row));
  }
  read_ += static_cast<int64_t>(there.size());
  encoded_ += static_cast<int64_t>(missing.size());
  if (there.empty()) return codec_->encode(ids, mask);
  const at::Tensor fresh_rows = at::tensor(missing, at::kLong).to(ids.device());
  const at::Tensor fresh =
      missing.empty() ? at::Tensor()
                      : codec_->encode(ids.index_select(0, fresh_rows), mask.index_select(0, fresh_rows));
  const at::Device device = missing.empty() ? ids.device() : fresh.device();
  const at::Tensor known = codec_->normalise(cache_.read(found).to(device));
  if (missing.empty()) return known;
  at::Tensor latents = at::empty({ids.size(0), ids.size(1), dim()}, known.options());
  latents.index_copy_(0, at::tensor(there, at::kLong).to(device), known);
  latents.index_copy_(0, fresh_rows.to(device), fresh);
  return latents;
}

std::unique_ptr<LatentCodec> make_training_codec(const LatentsConfig& config, const DatasetInfo& train,
                                                 int64_t length, int64_t pad_id, at::Device device) {
  std::unique_ptr<LatentCodec> codec = make_latent_codec(config, device);
  if (config.cache.empty()) return codec;
  if (config.source == LatentSource::kTable)
    usage_error("latents.cache: a table is read faster than a cache of it; leave the key out");
  LatentCache cache = LatentCache::open(config.cache);
  const LatentCacheInfo& info = cache.info();
  require_equal(info, "dtype", info.dtype, enum_name(config.dtype));
  require_equal(info, "the dataset", info.data_hash, train.data_hash);
  require_equal(info, "sequences of length", info.length, length);
  require_equal(info, "pad id", info.pad_id, pad_id);
  log_info(cat(config.cache, ": latents of ", info.rows, " different rows, ", info.dtype));
  return std::make_unique<CachedCodec>(std::move(codec), std::move(cache));
}

}  // namespace elf
