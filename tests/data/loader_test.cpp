// Batches as a pure function of (seed, step, slots); field cases 10 and 24.
#include "elf/data/loader.h"

#include <ATen/ATen.h>

#include <set>

#include "elf/data/pad.h"
#include "support/errors.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

using test::TemporaryFolder;
using test::usage_message;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Pairs whose row i has condition [10 + i % 3 tokens] and target [i + 1, 1].
std::shared_ptr<const Dataset> make_pairs(const TemporaryFolder& folder, int64_t rows) {
  DatasetInfo header;
  header.kind = "pairs";
  header.tokenizer_hash = "xxh128:aa";
  header.vocab_size = 1000;
  header.max_length = 8;
  header.max_input_length = 4;
  DatasetWriter writer(folder / "p.h5", header);
  for (int32_t row = 0; row < rows; ++row) {
    writer.add_pair(std::vector<int32_t>(static_cast<size_t>(1 + row % 3), 900), {row + 1, 1}, "s", "t");
  }
  writer.finish();
  return std::make_shared<const Dataset>(Dataset::open(folder / "p.h5"));
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && at::equal(a, b);
}

TEST(Loader, DoesNotDependOnTheSplit) {
  const TemporaryFolder folder;
  const Loader loader(make_pairs(folder, 37), {.global_batch = 12, .pad_id = 0, .seed = 7});
  for (const int64_t step : {0, 3, 1000000}) {
    const Batch whole = loader.batch(step, 0, 12);
    for (const int64_t part : {1, 3, 4, 6}) {
      std::vector<at::Tensor> ids, valid, cond;
      std::vector<int64_t> samples, rows;
      for (int64_t first = 0; first < 12; first += part) {
        const Batch batch = loader.batch(step, first, part);
        ids.push_back(batch.ids);
        valid.push_back(batch.valid_mask);
        cond.push_back(batch.cond_mask);
        samples.insert(samples.end(), batch.samples.begin(), batch.samples.end());
        rows.insert(rows.end(), batch.rows.begin(), batch.rows.end());
      }
      EXPECT_TRUE(same(at::cat(ids), whole.ids));
      EXPECT_TRUE(same(at::cat(valid), whole.valid_mask));
      EXPECT_TRUE(same(at::cat(cond), whole.cond_mask));
      EXPECT_EQ(samples, whole.samples);
      EXPECT_EQ(rows, whole.rows);
    }
  }
}

// 37 samples, batch 4, 30 steps: three epochs and a bit; every epoch shows each row once, and a fresh loader
// at step 13 goes on alike.
TEST(Loader, ShowsEveryRowOnceAnEpochAndSeeks) {
  const TemporaryFolder folder;
  const auto data = make_pairs(folder, 37);
  const LoaderConfig config{.global_batch = 4, .seed = 11};
  const auto rows_from = [&](int64_t first, int64_t last) {
    const Loader loader(data, config);
    std::vector<int64_t> rows;
    for (int64_t step = first; step < last; ++step) {
      const Batch batch = loader.batch(step, 0, 4);
      rows.insert(rows.end(), batch.rows.begin(), batch.rows.end());
    }
    return rows;
  };
  const std::vector<int64_t> all = rows_from(0, 30);
  std::vector<int64_t> resumed = rows_from(0, 13);
  const std::vector<int64_t> rest = rows_from(13, 30);
  resumed.insert(resumed.end(), rest.begin(), rest.end());
  EXPECT_EQ(all, resumed);
  for (int epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(std::set<int64_t>(all.begin() + epoch * 37, all.begin() + (epoch + 1) * 37).size(), 37u);
  }
  EXPECT_NE(std::vector<int64_t>(all.begin(), all.begin() + 37),
            std::vector<int64_t>(all.begin() + 37, all.begin() + 74));
  EXPECT_DOUBLE_EQ(Loader(data, config).steps_per_epoch(), 37.0 / 4.0);
}

TEST(Loader, PadsAndMasks) {
  const TemporaryFolder folder;
  const auto data = make_pairs(folder, 3);
  const Batch batch = sequential_batch(*data, 1, 2, 6, /*pad_id=*/1);
  EXPECT_TRUE(
      same(batch.ids, at::tensor({900, 900, 2, 1, 1, 1, 900, 900, 900, 3, 1, 1}, at::kLong).view({2, 6})));
  EXPECT_TRUE(same(batch.valid_mask.to(at::kLong),
                   at::tensor({1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0}, at::kLong).view({2, 6})));
  EXPECT_TRUE(same(batch.cond_mask.to(at::kLong),
                   at::tensor({1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0}, at::kLong).view({2, 6})));
  EXPECT_THAT(batch.samples, ElementsAre(1, 2));
  EXPECT_THAT(batch.rows, ElementsAre(1, 2));
  EXPECT_EQ(sequential_batch(*data, 0, 1, 0, 0).length(), 8);
  EXPECT_EQ(Loader(data, {.global_batch = 3}).batch(0, 0, 3).length(), 8);
}

TEST(Loader, RefusesTooFewRowsAndTooLongOnes) {
  const TemporaryFolder folder;
  const auto data = make_pairs(folder, 3);
  EXPECT_THAT(usage_message([&] { Loader(data, {.global_batch = 8}); }),
              AllOf(HasSubstr("3 rows"), HasSubstr("8")));
  EXPECT_THAT(usage_message([&] { Loader(data, {.global_batch = 1, .length = 4}); }),
              AllOf(HasSubstr("5 tokens"), HasSubstr("length 4")));
  EXPECT_THAT(usage_message([&] { Loader(data, {.global_batch = 2}).batch(0, 1, 2); }),
              HasSubstr("global batch of 2"));
}

TEST(MakeBatch, RefusesWhatDoesNotFit) {
  EXPECT_THAT(usage_message([] { make_batch({{1, 2, 3}}, {0}, 2, 0); }), HasSubstr("3 tokens"));
  EXPECT_THAT(usage_message([] { make_batch({{1, 2}}, {3}, 4, 0); }), HasSubstr("3 tokens"));
  EXPECT_THAT(usage_message([] { make_batch({{1}}, {}, 4, 0); }), HasSubstr("0 condition lengths"));
  EXPECT_EQ(make_batch({}, {}, 4, 0).size(), 0);
}

}  // namespace
}  // namespace elf
