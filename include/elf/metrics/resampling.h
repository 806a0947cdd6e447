// How sure a corpus score is: scores of resamples of its segments, drawn with replacement (Koehn 2004). The
// draws are those of numpy.random.default_rng(seed).choice, so that interval and p-value equal sacreBLEU's
// for the same seed and number of resamples.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace elf {

// What a corpus score is made of: for each segment the same few numbers, and the score of their sums.
struct CorpusStatistics {
  std::vector<std::vector<double>> segments;
  std::function<double(const std::vector<double>& sums)> score;

  std::vector<double> sums() const;
  double corpus_score() const { return score(sums()); }
};

struct Resampling {
  int resamples = 1000;
  uint64_t seed = 12345;  // sacreBLEU's default
};

// Of the resamples' scores: their mean, and half the width of what holds 95 % of them.
struct Interval {
  double mean = 0, half_width = 0;
};

// Throws Error (usage): no segment, fewer than 2 resamples.
Interval bootstrap_interval(const CorpusStatistics& corpus, const Resampling& resampling = {});

struct PairedResult {
  double baseline = 0, system = 0;  // scores
  Interval interval;                // of the system
  // Probability of a difference of this size if the two were equally good: the share of resamples whose
  // difference, less the mean difference, exceeds the one found (the resamples and the real one counted).
  double p_value = 1;
};

// Both on the same resamples of the same segments. Throws Error (usage) when the counts differ.
PairedResult paired_bootstrap(const CorpusStatistics& baseline, const CorpusStatistics& system,
                              const Resampling& resampling = {});

// PCG64, seeded through SeedSequence: numpy.random.default_rng(seed).
class NumpyGenerator {
 public:
  explicit NumpyGenerator(uint64_t seed);

  uint64_t next64();
  uint32_t next32();               // halves of next64, the lower one first
  uint32_t below(uint32_t bound);  // integers(0, bound); bound >= 1

 private:
  unsigned __int128 state_ = 0, increment_ = 0;
  uint32_t kept_ = 0;
  bool has_kept_ = false;
};

}  // namespace elf
