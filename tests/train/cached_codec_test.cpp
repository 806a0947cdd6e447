// Latents from a cache equal those of the encoder, whatever is in the cache; a cache of anything else is
// refused (field case 33).
#include "elf/train/cached_codec.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <limits>
#include <set>

#include "elf/base/error.h"
#include "elf/data/loader.h"
#include "elf/data/masks.h"
#include "support/errors.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

using test::usage_message;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Cached : public ::testing::Test {
 protected:
  Cached() {
    DatasetInfo header;
    header.kind = "pairs";
    header.tokenizer_hash = "xxh128:aa";
    header.vocab_size = 120;
    header.max_length = 10;
    header.max_input_length = 5;
    DatasetWriter writer(folder_ / "data.h5", header);
    for (int32_t row = 0; row < 12; ++row) {
      const auto condition = std::vector<int32_t>(static_cast<size_t>(1 + row % 4), 7 + row);
      writer.add_pair(condition, {50 + row % 6, 1}, "s", "t");
    }
    info_ = writer.finish();
    data_ = std::make_shared<const Dataset>(Dataset::open(folder_ / "data.h5"));
    config_ = {.source = LatentSource::kT5,
               .path = test::golden("t5/model_relu"),
               .mean = 0.5,
               .std = 0.25,
               .statistics = ""};
  }

  struct Rows {
    at::Tensor ids, mask;
  };
  Rows rows(int64_t first, int64_t count, const std::vector<int64_t>& dropped = {}) const {
    const Batch batch = sequential_batch(*data_, first, count, 10, 1);
    at::Tensor drop = at::zeros({count}, at::kBool);
    for (const int64_t row : dropped) drop[row] = true;
    return {batch.ids, encoder_mask(batch.valid_mask, batch.cond_mask, drop)};
  }

  LatentCacheInfo cache_info(const std::string& dtype = "float32") const {
    LatentsConfig raw = config_;
    raw.mean = 0;
    raw.std = 1;
    raw.dtype = dtype == "float32" ? EncoderDtype::kFloat32 : EncoderDtype::kBFloat16;
    const auto codec = make_latent_codec(raw, at::kCPU);
    return {.path = "",
            .rows = 0,
            .length = 10,
            .dim = 16,
            .pad_id = 1,
            .encoder = codec->source_digest(),
            .dtype = dtype,
            .data_hash = info_.data_hash};
  }

  // The raw outputs of these rows.
  std::string write_cache(const LatentCacheInfo& info, const std::vector<Rows>& all) {
    LatentsConfig raw = config_;
    raw.mean = 0;
    raw.std = 1;
    raw.dtype = info.dtype == "float32" ? EncoderDtype::kFloat32 : EncoderDtype::kBFloat16;
    const auto codec = make_latent_codec(raw, at::kCPU);
    LatentCacheWriter writer(folder_ / "latents.h5", info);
    for (const Rows& some : all) {
      const at::Tensor latents = codec->encode(some.ids, some.mask);
      const std::vector<uint64_t> keys = latent_keys(some.ids, some.mask);
      for (size_t row = 0; row < keys.size(); ++row)
        writer.add(keys[row], latents[static_cast<int64_t>(row)]);
    }
    writer.finish();
    return (folder_ / "latents.h5").string();
  }

  const test::TemporaryFolder folder_;
  std::shared_ptr<const Dataset> data_;
  DatasetInfo info_;
  LatentsConfig config_;
};

TEST_F(Cached, KeysTellWhatTheEncoderSeesApart) {
  const std::vector<uint64_t> plain = latent_keys(rows(0, 12).ids, rows(0, 12).mask);
  const Rows dropped = rows(0, 12, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const std::vector<uint64_t> hidden = latent_keys(dropped.ids, dropped.mask);
  std::set<uint64_t> all(plain.begin(), plain.end());
  all.insert(hidden.begin(), hidden.end());
  EXPECT_EQ(all.size(), 24u);
  const Rows part = rows(3, 2);
  EXPECT_EQ(latent_keys(part.ids, part.mask), std::vector<uint64_t>(plain.begin() + 3, plain.begin() + 5));
}

TEST_F(Cached, GivesWhatTheEncoderGives) {
  const auto codec = make_latent_codec(config_, at::kCPU);
  // Rows 0 to 7 as they are, 0 to 3 with the condition dropped too; the rest is encoded on the way.
  config_.cache = write_cache(cache_info(), {rows(0, 8), rows(0, 4, {0, 1, 2, 3})});
  const auto cached = make_training_codec(config_, info_, 10, 1, at::kCPU);
  auto& counts = dynamic_cast<CachedCodec&>(*cached);
  for (const auto& dropped :
       std::vector<std::vector<int64_t>>{{}, {1, 2, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}) {
    const Rows batch = rows(0, 12, dropped);
    EXPECT_TRUE(test::all_close(cached->encode(batch.ids, batch.mask), codec->encode(batch.ids, batch.mask),
                                1e-5, 1e-5));
  }
  EXPECT_EQ(counts.rows_read(), 8 + 7 + 4);
  EXPECT_EQ(counts.rows_encoded(), 4 + 5 + 8);
  const Rows whole = rows(0, 8), none = rows(8, 4);
  EXPECT_TRUE(test::all_close(cached->encode(whole.ids, whole.mask), codec->encode(whole.ids, whole.mask),
                              1e-5, 1e-5));
  EXPECT_TRUE(test::all_close(cached->encode(none.ids, none.mask), codec->encode(none.ids, none.mask), 0, 0));
  EXPECT_EQ(cached->digest(), codec->digest());
}

TEST_F(Cached, StoresBFloat16AsTheEncoderGivesIt) {
  config_.dtype = EncoderDtype::kBFloat16;
  const auto codec = make_latent_codec(config_, at::kCPU);
  config_.cache = write_cache(cache_info("bfloat16"), {rows(0, 12)});
  const auto cached = make_training_codec(config_, info_, 10, 1, at::kCPU);
  const Rows batch = rows(0, 12);
  EXPECT_TRUE(
      test::all_close(cached->encode(batch.ids, batch.mask), codec->encode(batch.ids, batch.mask), 0, 0));
}

TEST_F(Cached, RefusesACacheOfAnythingElse) {
  const LatentCacheInfo good = cache_info();
  const auto message = [&](const LatentCacheInfo& info, const std::vector<Rows>& content = {}) {
    config_.cache = write_cache(info, content);
    return usage_message([&] { make_training_codec(config_, info_, 10, 1, at::kCPU); });
  };
  LatentCacheInfo other = good;
  other.dtype = "bfloat16";
  EXPECT_THAT(message(other), AllOf(HasSubstr("dtype bfloat16"), HasSubstr("float32")));
  other = good;
  other.encoder = "xxh128:bb";
  EXPECT_THAT(message(other), AllOf(HasSubstr("xxh128:bb"), HasSubstr(good.encoder)));
  other = good;
  other.data_hash = "xxh128:cc";
  EXPECT_THAT(message(other), AllOf(HasSubstr("xxh128:cc"), HasSubstr(info_.data_hash)));
  other = good;
  other.length = 12;
  EXPECT_THAT(message(other), AllOf(HasSubstr("length 12"), HasSubstr("10")));
  other = good;
  other.pad_id = 0;
  EXPECT_THAT(message(other), AllOf(HasSubstr("pad id 0"), HasSubstr("has 1")));
  config_.cache = (folder_ / "data.h5").string();
  EXPECT_THAT(usage_message([&] { make_training_codec(config_, info_, 10, 1, at::kCPU); }),
              HasSubstr("not a cache of latents"));
  other = good;
  other.dtype = "float16";
  EXPECT_THAT(usage_message([&] { LatentCacheWriter(folder_ / "x.h5", other); }), HasSubstr("overflows"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.h5"));
}

TEST_F(Cached, RefusesLatentsThatAreNotFinite) {
  LatentCacheWriter writer(folder_ / "latents.h5", cache_info());
  at::Tensor latents = at::zeros({10, 16});
  latents[3][4] = std::numeric_limits<float>::infinity();
  EXPECT_THROW(writer.add(1, latents), Error);
}

}  // namespace
}  // namespace elf
