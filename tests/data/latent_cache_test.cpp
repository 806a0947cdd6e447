// Caches of encoder outputs: what is written comes back, once a key; damage is told with the file's name.
#include "elf/data/latent_cache.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <limits>
#include <optional>

#include "support/errors.h"
#include "support/hdf5_attribute.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using test::set_attribute;
using test::usage_message;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Sets a number of the latents, with its checksum.
void set_latent(const fs::path& path, hsize_t index, float value) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(file, 0);
  const hid_t array = H5Dopen2(file, "latents", H5P_DEFAULT), place = H5Dget_space(array);
  const hsize_t one = 1;
  const hid_t memory = H5Screate_simple(1, &one, nullptr);
  H5Sselect_hyperslab(place, H5S_SELECT_SET, &index, nullptr, &one, nullptr);
  EXPECT_GE(H5Dwrite(array, H5T_NATIVE_FLOAT, memory, place, H5P_DEFAULT, &value), 0);
  H5Sclose(memory);
  H5Sclose(place);
  H5Dclose(array);
  H5Fclose(file);
}

class LatentCacheFile : public ::testing::Test {
 protected:
  static LatentCacheInfo header(const std::string& dtype) {
    LatentCacheInfo info;
    info.length = 6;
    info.dim = 4;
    info.pad_id = 1;
    info.encoder = "xxh128:e";
    info.dtype = dtype;
    info.data_hash = "xxh128:d";
    return info;
  }
  // Of row 0, 1 or 2: whole numbers that bfloat16 has, too.
  static at::Tensor latents(int64_t row) { return (at::arange(24).view({6, 4}) + 100 * row).to(at::kFloat); }
  // Three rows under the keys 10, 11 and 12, one of them added twice.
  fs::path write(const std::string& dtype = "float32") const {
    LatentCacheWriter writer(folder_ / "l.h5", header(dtype));
    for (const int64_t row : {0, 1, 1, 2}) writer.add(static_cast<uint64_t>(10 + row), latents(row));
    EXPECT_EQ(writer.finish().rows, 3);
    return folder_ / "l.h5";
  }
  const test::TemporaryFolder folder_;
};

TEST_F(LatentCacheFile, GivesRowsBackByTheirKeys) {
  for (const std::string dtype : {"float32", "bfloat16"}) {
    const LatentCache cache = LatentCache::open(write(dtype));
    EXPECT_EQ(cache.info().rows, 3);
    EXPECT_EQ(cache.info().length, 6);
    EXPECT_EQ(cache.info().dim, 4);
    EXPECT_EQ(cache.info().pad_id, 1);
    EXPECT_EQ(cache.info().encoder, "xxh128:e");
    EXPECT_EQ(cache.info().dtype, dtype);
    EXPECT_EQ(cache.info().data_hash, "xxh128:d");
    EXPECT_TRUE(cache.contains(11));
    EXPECT_FALSE(cache.contains(13));
    EXPECT_TRUE(at::equal(cache.read({12, 10, 12}), at::stack({latents(2), latents(0), latents(2)})));
    cache.verify();
    EXPECT_THAT(usage_message([&] {
                  cache.read({10, 13});
                }),
                AllOf(HasSubstr("l.h5"), HasSubstr("a row that it does not have was asked for")));
  }
}

TEST_F(LatentCacheFile, AttributesThatDoNotFitAreTold) {
  struct Damage {
    const char* name;
    std::optional<int64_t> value;
    const char* expected;
  };
  const char* const other_size = "but its arrays have another size; the file is damaged";
  const Damage cases[] = {
      {"complete", 0, "the cache is not complete; make it again with elf-prepare latents"},
      {"complete", std::nullopt, "the cache is not complete"},
      {"format", std::nullopt, "not a cache of latents"},
      {"format_version", 2, "cache format 2, this program reads 1"},
      {"rows", 4, "4 rows of 6 x 4 float32 by its attributes, but its arrays have another size"},
      {"rows", -1, other_size},
      {"length", 5, other_size},
      {"dim", 0, other_size},
      {"dim", std::numeric_limits<int64_t>::max(), other_size}};
  for (const Damage& damage : cases) {
    const fs::path path = write();
    set_attribute(path, damage.name, damage.value);
    EXPECT_THAT(usage_message([&] { LatentCache::open(path); }),
                AllOf(HasSubstr("l.h5: "), HasSubstr(damage.expected)))
        << damage.name;
  }
}

TEST_F(LatentCacheFile, NumbersThatAreNotFiniteAreFoundByVerifying) {
  const fs::path path = write();
  set_latent(path, 24 + 7, 500);
  {
    const LatentCache changed = LatentCache::open(path);
    changed.verify();
    EXPECT_EQ(changed.read({11})[0][1][3].item<float>(), 500);
  }
  set_latent(path, 24 + 7, std::numeric_limits<float>::quiet_NaN());
  const LatentCache cache = LatentCache::open(path);
  EXPECT_THAT(usage_message([&] { cache.verify(); }),
              HasSubstr("l.h5: row 1 holds numbers that are not finite; the file is damaged"));
}

TEST_F(LatentCacheFile, OtherShapesAreRefused) {
  LatentCacheWriter writer(folder_ / "l.h5", header("float32"));
  EXPECT_THAT(usage_message([&] {
                writer.add(1, at::zeros({4, 6}));
              }),
              HasSubstr("latents of a row must be [6, 4]; found [4, 6]"));
  const at::Tensor ids = at::zeros({2, 3}, at::kLong);
  EXPECT_THAT(usage_message([&] {
                latent_keys(ids, at::ones({2, 3}, at::kBool));
              }),
              HasSubstr("the mask must be [B=2, L=3, L]; found [2, 3]"));
  EXPECT_EQ(latent_keys(ids, at::ones({2, 3, 3}, at::kBool)).size(), 2u);
}

}  // namespace
}  // namespace elf
