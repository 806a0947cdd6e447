// Token tables: co-occurrence counts against a plain loop, the sparse truncated SVD against a dense full one.
#include "elf/model/token_table.h"

#include <algorithm>

#include "elf/base/error.h"
#include "elf/model/cooccurrence.h"
#include "elf/tensor/device.h"
#include "elf/tensor/random.h"
#include "support/golden.h"

namespace elf {
namespace {

std::vector<std::vector<int32_t>> documents(int64_t count, int64_t vocabulary) {
  std::vector<std::vector<int32_t>> result;
  for (int64_t d = 0; d < count; ++d) {
    const int64_t length = 1 + static_cast<int64_t>(random_bits({1, Purpose::kDataOrder}, d) % 12);
    std::vector<int32_t> document;
    for (int64_t i = 0; i < length; ++i) {
      const double u = static_cast<double>(random_bits({2, Purpose::kDataOrder}, d, i) >> 11) * 0x1p-53;
      document.push_back(
          static_cast<int32_t>(u * u * static_cast<double>(vocabulary)));  // some tokens are common
    }
    result.push_back(document);
  }
  return result;
}

// The definition, entry by entry, in float64.
at::Tensor plain_counts(const std::vector<std::vector<int32_t>>& documents, int64_t vocabulary,
                        int64_t window) {
  at::Tensor counts = at::zeros({vocabulary, vocabulary}, at::kDouble);
  auto entry = counts.accessor<double, 2>();
  for (const auto& document : documents) {
    for (int64_t i = 0; i < static_cast<int64_t>(document.size()); ++i) {
      for (int64_t j = 0; j < static_cast<int64_t>(document.size()); ++j) {
        const int64_t distance = std::abs(i - j);
        if (distance >= 1 && distance <= window)
          entry[document[i]][document[j]] += 1.0 / static_cast<double>(distance);
      }
    }
  }
  return counts;
}

at::Tensor plain_ppmi(const at::Tensor& counts, double exponent) {
  const at::Tensor p = counts / counts.sum();
  const at::Tensor share = p.sum(1);
  const at::Tensor context = at::where(share > 0, share.pow(exponent), 0.0);
  const at::Tensor q = context / context.sum();
  return at::where(p > 0, (p / (share.unsqueeze(1) * q.unsqueeze(0))).log(), at::zeros_like(p)).clamp_min(0);
}

TEST(Cooccurrence, CountsEqualTheDefinition) {
  const auto texts = documents(200, 30);
  CooccurrenceCounter counter(32, 4);
  for (const auto& text : texts) counter.add(text);
  at::Tensor counts = at::zeros({32, 32}, at::kDouble);
  for (const auto& pair : counter.pairs()) {
    counts[pair.low][pair.high] = static_cast<double>(pair.weight) / 12.0;
    counts[pair.high][pair.low] = static_cast<double>(pair.weight) / 12.0;
  }
  EXPECT_TRUE(test::all_close(counts, plain_counts(texts, 32, 4), 1e-12, 1e-12));
}

TEST(Cooccurrence, OrderOfDocumentsDoesNotMatter) {
  auto texts = documents(100, 20);
  CooccurrenceCounter forward(20, 4), backward(20, 4);
  for (const auto& text : texts) forward.add(text);
  std::reverse(texts.begin(), texts.end());
  for (const auto& text : texts) backward.add(text);
  EXPECT_TRUE(at::equal(ppmi_svd(forward, 8, 0.75, 0), ppmi_svd(backward, 8, 0.75, 0)));
}

// Both ways to the SVD, by iteration (few columns of many) and whole. Singular vectors to 1e-4 of the largest
// entry.
TEST(Cooccurrence, TruncatedSvdEqualsTheDenseOne) {
  set_threads(1);  // matrices this small are slower on two
  struct Case {
    int64_t vocabulary, width;
  };
  for (const auto [vocabulary, width] : {Case{400, 10}, Case{120, 60}}) {
    const auto texts = documents(3000, vocabulary - 5);
    CooccurrenceCounter counter(vocabulary, 4), again(vocabulary, 4);
    for (const auto& text : texts) counter.add(text);
    for (const auto& text : texts) again.add(text);
    const at::Tensor found = ppmi_svd(counter, width, 0.75, 3);
    const auto [u, s, v] =
        at::linalg_svd(plain_ppmi(plain_counts(texts, vocabulary, 4), 0.75), /*full_matrices=*/false);
    const at::Tensor vectors = u.narrow(1, 0, width);
    const at::Tensor sign = vectors.gather(0, vectors.abs().argmax(0, true)).sign();
    const at::Tensor expected = vectors * sign * s.narrow(0, 0, width).sqrt();
    // Products of rows do not depend on the choice of signs; the columns themselves follow our rule of signs.
    EXPECT_TRUE(test::close_to_largest(at::mm(found, found.t()), at::mm(expected, expected.t()), 1e-4))
        << vocabulary;
    EXPECT_TRUE(test::close_to_largest(found.narrow(1, 0, 2), expected.narrow(1, 0, 2), 1e-3)) << vocabulary;
    EXPECT_TRUE(at::equal(ppmi_svd(again, width, 0.75, 3), found)) << vocabulary;
    // Tokens never seen: zero, and rows of their own in the completed table.
    EXPECT_TRUE(at::equal(found.narrow(0, vocabulary - 5, 5), at::zeros({5, width}))) << vocabulary;
    const at::Tensor complete = complete_table(found, 3);
    EXPECT_GT((complete[-1] - complete[-2]).norm().item<double>(), 0.1) << vocabulary;
  }
}

TEST(Cooccurrence, RefusesWhatCannotBe) {
  CooccurrenceCounter counter(5, 4);
  counter.add({1, 2, 1});
  EXPECT_THROW(ppmi_svd(counter, 3, 0.75, 0), Error);
  EXPECT_THROW(counter.add({5}), Error);
  EXPECT_THROW(CooccurrenceCounter(5, 11), Error);
}

TEST(TokenTable, GaussianRowsAreStandardisedAndKeyed) {
  const at::Tensor table = gaussian_table(50, 16, 9);
  EXPECT_TRUE(test::all_close(table.mean(1), at::zeros({50}), 0, 1e-6));
  EXPECT_TRUE(test::all_close(table.square().mean(1), at::ones({50}), 0, 1e-5));
  EXPECT_TRUE(at::equal(gaussian_table(10, 16, 9), table.narrow(0, 0, 10)));
  EXPECT_FALSE(at::equal(gaussian_table(50, 16, 10), table));
}

TEST(TokenTable, CompletedRowsHaveTheRightNormAndNoneIsZero) {
  at::Tensor rows = normal({4, Purpose::kTable}, sample_range(0, 20), {8}) + 3.0;
  rows[0].zero_();
  rows[7].zero_();
  const at::Tensor table = complete_table(rows, 5);
  EXPECT_TRUE(test::all_close(table.square().mean(1), at::ones({20}), 0, 1e-5));
  EXPECT_FALSE(at::equal(table[0], table[7]));
  // Seen rows: the direction of row minus mean of the seen.
  const at::Tensor centred = rows[3] - rows.sum(0) / 18;
  EXPECT_TRUE(test::all_close(table[3], centred / centred.norm() * std::sqrt(8.0), 1e-5, 1e-5));
}

}  // namespace
}  // namespace elf
