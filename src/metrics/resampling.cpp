#include "elf/metrics/resampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "elf/base/error.h"

namespace elf {
namespace {

constexpr int kTail = 40;  // 1 in 40 of the scores lies below a 95 % interval

// numpy's SeedSequence (after O'Neill's seed_seq_fe): a pool of four words that every bit of the seed
// reaches.
class SeedSequence {
 public:
  explicit SeedSequence(uint64_t seed) {
    std::vector<uint32_t> words = {static_cast<uint32_t>(seed)};
    if (seed >> 32 != 0) words.push_back(static_cast<uint32_t>(seed >> 32));
    for (size_t i = 0; i < pool_.size(); ++i) pool_[i] = hash(i < words.size() ? words[i] : 0);
    for (size_t from = 0; from < pool_.size(); ++from) {
      for (size_t to = 0; to < pool_.size(); ++to) {
        if (from != to) pool_[to] = mix(pool_[to], hash(pool_[from]));
      }
    }
  }

  std::array<uint64_t, 4> state() const {
    std::array<uint32_t, 8> words;
    uint32_t constant = 0x8b51f9dd;
    for (size_t i = 0; i < words.size(); ++i) {
      uint32_t value = pool_[i % pool_.size()] ^ constant;
      constant *= 0x58f38ded;
      value *= constant;
      words[i] = value ^ (value >> 16);
    }
    std::array<uint64_t, 4> state;
    for (size_t i = 0; i < state.size(); ++i)
      state[i] = words[2 * i] | static_cast<uint64_t>(words[2 * i + 1]) << 32;
    return state;
  }

 private:
  uint32_t hash(uint32_t value) {
    value ^= constant_;
    constant_ *= 0x931e8875;
    value *= constant_;
    return value ^ (value >> 16);
  }
  static uint32_t mix(uint32_t x, uint32_t y) {
    const uint32_t mixed = 0xca01f9dd * x - 0x4973f715 * y;
    return mixed ^ (mixed >> 16);
  }

  std::array<uint32_t, 4> pool_ = {};
  uint32_t constant_ = 0x43b0d7e5;
};

unsigned __int128 join(uint64_t high, uint64_t low) {
  return static_cast<unsigned __int128>(high) << 64 | low;
}

// Scores of the corpora on each resample; all corpora see the same segments.
std::vector<std::vector<double>> resampled_scores(const std::vector<const CorpusStatistics*>& corpora,
                                                  const Resampling& resampling) {
  const size_t segments = corpora.front()->segments.size();
  if (segments == 0) usage_error("bootstrap: there is no segment");
  if (resampling.resamples < 2)
    usage_error("bootstrap: found ", resampling.resamples, " resamples, expected at least 2");
  NumpyGenerator generator(resampling.seed);
  std::vector<std::vector<double>> scores(corpora.size());
  std::vector<uint32_t> drawn(segments);
  for (int i = 0; i < resampling.resamples; ++i) {
    for (uint32_t& segment : drawn) segment = generator.below(static_cast<uint32_t>(segments));
    for (size_t c = 0; c < corpora.size(); ++c) {
      std::vector<double> sums(corpora[c]->segments.front().size(), 0.0);
      for (const uint32_t segment : drawn) {
        const std::vector<double>& row = corpora[c]->segments[segment];
        for (size_t k = 0; k < sums.size(); ++k) sums[k] += row[k];
      }
      scores[c].push_back(corpora[c]->score(sums));
    }
  }
  return scores;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Interval interval_of(std::vector<double> scores) {
  std::sort(scores.begin(), scores.end());
  const size_t low = scores.size() / kTail, high = scores.size() - 1 - low;
  return {mean_of(scores), 0.5 * (scores[high] - scores[low])};
}

}  // namespace

std::vector<double> CorpusStatistics::sums() const {
  std::vector<double> sums(segments.empty() ? 0 : segments.front().size(), 0.0);
  for (const std::vector<double>& row : segments) {
    for (size_t k = 0; k < sums.size(); ++k) sums[k] += row[k];
  }
  return sums;
}

Interval bootstrap_interval(const CorpusStatistics& corpus, const Resampling& resampling) {
  return interval_of(resampled_scores({&corpus}, resampling).front());
}

PairedResult paired_bootstrap(const CorpusStatistics& baseline, const CorpusStatistics& system,
                              const Resampling& resampling) {
  if (baseline.segments.size() != system.segments.size()) {
    usage_error("paired bootstrap: the baseline has ", baseline.segments.size(), " segments, the system ",
                system.segments.size());
  }
  const auto scores = resampled_scores({&baseline, &system}, resampling);
  PairedResult result;
  result.baseline = baseline.corpus_score();
  result.system = system.corpus_score();
  result.interval = interval_of(scores[1]);
  std::vector<double> differences;
  for (size_t i = 0; i < scores[0].size(); ++i) differences.push_back(std::abs(scores[1][i] - scores[0][i]));
  const double mean = mean_of(differences), found = std::abs(result.baseline - result.system);
  const auto above = std::count_if(differences.begin(), differences.end(),
                                   [&](double difference) { return difference - mean > found; });
  result.p_value = static_cast<double>(above + 1) / static_cast<double>(differences.size() + 1);
  return result;
}

NumpyGenerator::NumpyGenerator(uint64_t seed) {
  const std::array<uint64_t, 4> words = SeedSequence(seed).state();
  increment_ = join(words[2], words[3]) << 1 | 1;
  next64();
  state_ += join(words[0], words[1]);
  next64();
}

uint64_t NumpyGenerator::next64() {
  state_ = state_ * join(0x2360ED051FC65DA4ull, 0x4385DF649FCCF645ull) + increment_;
  const uint64_t folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
  const unsigned turn = static_cast<unsigned>(state_ >> 122);
  return folded >> turn | folded << ((64 - turn) & 63);
}

uint32_t NumpyGenerator::next32() {
  if (has_kept_) {
    has_kept_ = false;
    return kept_;
  }
  const uint64_t both = next64();
  has_kept_ = true;
  kept_ = static_cast<uint32_t>(both >> 32);
  return static_cast<uint32_t>(both);
}

uint32_t NumpyGenerator::below(uint32_t bound) {  // Lemire 2019; nothing is drawn for a bound of 1
  if (bound == 1) return 0;
  uint64_t product = static_cast<uint64_t>(next32()) * bound;
  if (static_cast<uint32_t>(product) < bound) {
    const uint32_t least = (UINT32_MAX - (bound - 1)) % bound;
    while (static_cast<uint32_t>(product) < least) product = static_cast<uint64_t>(next32()) * bound;
  }
  return static_cast<uint32_t>(product >> 32);
}

}  // namespace elf
