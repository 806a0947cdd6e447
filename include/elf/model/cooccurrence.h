// Static token tables from co-occurrence counts: positive pointwise mutual information, factored by a
// truncated SVD (Levy et al., 2015).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace elf {

// Counts how often two tokens stand within `window` of each other in a document, a pair at distance d with
// weight 1/d. Counts are kept as integers (in units of 1 / lcm(1..window)), so the result does not depend on
// the order of documents.
class CooccurrenceCounter {
 public:
  struct Pair {
    uint32_t low, high;  // low <= high
    uint64_t weight;     // of both orders together, in units
  };

  // window in [1, 10]. Throws Error (usage) otherwise.
  CooccurrenceCounter(int64_t vocabulary, int64_t window);

  // One document; ids in [0, vocabulary), not padded. EOS takes part when it is there: give it once.
  void add(const std::vector<int32_t>& document);

  // Every pair seen, sorted by (low, high).
  const std::vector<Pair>& pairs();

  int64_t vocabulary() const { return vocabulary_; }
  int64_t tokens() const { return tokens_; }

 private:
  void fold();  // the buffer into the sorted pairs

  int64_t vocabulary_, window_, tokens_ = 0;
  std::vector<uint64_t> units_;  // by distance
  std::vector<Pair> sorted_, buffer_;
};

// U S^0.5 [V, width] f32 of the truncated SVD of the PPMI matrix
//   M_ij = max(0, log(p_ij / (p_i q_j))),  p_i the share of i's pairs, q_j proportional to p_j^exponent.
// Rows of tokens that occur in no pair are zero. Subspace iteration with a Chebyshev filter on the sparse
// matrix from a start keyed by `seed`, until the singular values stand still to 1e-9 (their columns then to
// about 1e-4); the largest entry of every column is positive, so that the result is determined. Throws Error
// (usage): fewer tokens with pairs than `width`.
at::Tensor ppmi_svd(CooccurrenceCounter& counts, int64_t width, double exponent, uint64_t seed);

}  // namespace elf
