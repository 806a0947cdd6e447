// A keyed permutation of [0, n) that is computed, not stored: the order of an epoch with O(1) memory and O(1)
// seeking.
#pragma once

#include <cstdint>

namespace elf {

// A Feistel network over the smallest power of four >= n, applied again until the value falls below n (cycle
// walking): a bijection of [0, n), at most four applications on average. Round function: elf/tensor/random.h,
// Purpose::kDataOrder, keyed by (seed, epoch).
class Permutation {
 public:
  // n >= 1.
  Permutation(int64_t n, uint64_t seed, uint64_t epoch);

  // index in [0, n) -> [0, n).
  int64_t operator()(int64_t index) const;

 private:
  uint64_t apply_once(uint64_t value) const;

  uint64_t n_, seed_, epoch_;
  int half_bits_;
};

}  // namespace elf
