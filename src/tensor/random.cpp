#include "elf/tensor/random.h"

#include <ATen/ATen.h>

#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "elf/tensor/parallel.h"

namespace elf {
namespace {

using Block = std::array<uint32_t, 4>;

// Philox4x32 with ten rounds: a bijection of the 128-bit counter for each 64-bit key.
Block philox(Block counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

// SplitMix64's finaliser: spreads every bit of the input over the output.
uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// The numbers of one sample: the key names seed, purpose and step, the counter's halves are sample and
// position.
class Row {
 public:
  Row(const Stream& stream, uint64_t sample) : sample_(sample) {
    key_ = mix(mix(mix(stream.seed) ^ static_cast<uint64_t>(stream.purpose)) ^ stream.step);
  }
  Block block(uint64_t position) const {
    return philox({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
                   static_cast<uint32_t>(sample_), static_cast<uint32_t>(sample_ >> 32)},
                  static_cast<uint32_t>(key_), static_cast<uint32_t>(key_ >> 32));
  }

 private:
  uint64_t key_, sample_;
};

float uniform_of(uint32_t bits) {
  return static_cast<float>(bits >> 8) * 0x1p-24f;
}  // [0, 1)

// Two normals from two uniforms (Box-Muller); the first uniform is taken in (0, 1].
std::pair<float, float> normals_of(uint32_t a, uint32_t b) {
  const float radius = std::sqrt(-2.0f * std::log((static_cast<float>(a >> 8) + 1.0f) * 0x1p-24f));
  const float angle = 2.0f * std::numbers::pi_v<float> * uniform_of(b);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// Fills [B, shape...]: fill(block) gives four numbers.
template <class Fill>
at::Tensor fill_rows(const Stream& stream, const std::vector<int64_t>& samples, at::IntArrayRef shape,
                     Fill fill) {
  std::vector<int64_t> sizes{static_cast<int64_t>(samples.size())};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  at::Tensor result = at::empty(sizes, at::kFloat);
  const int64_t width = samples.empty() ? 0 : result.numel() / static_cast<int64_t>(samples.size());
  float* data = result.data_ptr<float>();
  parallel_for(static_cast<int64_t>(samples.size()), std::max<int64_t>(1, 4096 / std::max<int64_t>(1, width)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t b = begin; b < end; ++b) {
                   const Row row(stream, static_cast<uint64_t>(samples[b]));
                   float* out = data + b * width;
                   for (int64_t i = 0; i < width; i += 4) {
                     const std::array<float, 4> four = fill(row.block(static_cast<uint64_t>(i / 4)));
                     for (int64_t k = 0; k < std::min<int64_t>(4, width - i); ++k) out[i + k] = four[k];
                   }
                 }
               });
  return result;
}

}  // namespace

at::Tensor normal(const Stream& stream, const std::vector<int64_t>& samples, at::IntArrayRef shape) {
  return fill_rows(stream, samples, shape, [](const Block& bits) -> std::array<float, 4> {
    const auto [a, b] = normals_of(bits[0], bits[1]);
    const auto [c, d] = normals_of(bits[2], bits[3]);
    return {a, b, c, d};
  });
}

at::Tensor uniform(const Stream& stream, const std::vector<int64_t>& samples, at::IntArrayRef shape) {
  return fill_rows(stream, samples, shape, [](const Block& bits) -> std::array<float, 4> {
    return {uniform_of(bits[0]), uniform_of(bits[1]), uniform_of(bits[2]), uniform_of(bits[3])};
  });
}

uint64_t random_bits(const Stream& stream, uint64_t sample, uint64_t position) {
  const Block bits = Row(stream, sample).block(position);
  return (uint64_t{bits[1]} << 32) | bits[0];
}

std::vector<int64_t> sample_range(int64_t first, int64_t count) {
  std::vector<int64_t> samples(static_cast<size_t>(count));
  std::iota(samples.begin(), samples.end(), first);
  return samples;
}

}  // namespace elf
