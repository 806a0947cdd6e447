#include "elf/data/permutation.h"

#include <bit>

#include "elf/base/error.h"
#include "elf/tensor/random.h"

namespace elf {
namespace {

constexpr uint64_t kRounds = 6;

}  // namespace

Permutation::Permutation(int64_t n, uint64_t seed, uint64_t epoch)
    : n_(static_cast<uint64_t>(n)), seed_(seed), epoch_(epoch) {
  if (n < 1) usage_error("a permutation of ", n, " things");
  const int bits = std::bit_width(n_ - 1);
  half_bits_ = bits < 2 ? 1 : (bits + 1) / 2;
}

uint64_t Permutation::apply_once(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  const Stream stream{seed_, Purpose::kDataOrder, epoch_};
  uint64_t left = value >> half_bits_, right = value & mask;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t mixed = left ^ (random_bits(stream, right, round) & mask);
    left = right;
    right = mixed;
  }
  return (left << half_bits_) | right;
}

int64_t Permutation::operator()(int64_t index) const {
  uint64_t value = static_cast<uint64_t>(index);
  if (value >= n_) usage_error("index ", index, " of a permutation of ", n_);
  do {
    value = apply_once(value);
  } while (value >= n_);
  return static_cast<int64_t>(value);
}

}  // namespace elf
