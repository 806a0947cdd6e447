#include "elf/data/span_corruption.h"

#include <algorithm>
#include <cmath>

#include "elf/base/error.h"

namespace elf {
namespace {

// `total` cut into `parts` positive lengths, every way equally likely: each of the total - 1 gaps is a cut
// with probability cuts still to make / gaps still to come.
std::vector<int64_t> cut(int64_t total, int64_t parts, const Stream& stream, int64_t sample,
                         uint64_t position) {
  std::vector<int64_t> lengths;
  int64_t start = 0, cuts = parts - 1;
  for (int64_t gap = 1; gap < total && cuts > 0; ++gap) {
    const double u =
        static_cast<double>(
            random_bits(stream, static_cast<uint64_t>(sample), position + static_cast<uint64_t>(gap)) >> 11) *
        0x1p-53;
    if (u * static_cast<double>(total - gap) >= static_cast<double>(cuts)) continue;
    lengths.push_back(gap - start);
    start = gap;
    --cuts;
  }
  lengths.push_back(total - start);
  return lengths;
}

}  // namespace

CorruptedText corrupt_spans(const std::vector<int32_t>& text, const SpanCorruption& settings,
                            const Stream& stream, int64_t sample) {
  const auto length = static_cast<int64_t>(text.size());
  if (length == 0) usage_error("span corruption: the text is empty");
  if (settings.sentinels < 1)
    usage_error(
        "span corruption: the tokenizer has no sentinels; make one with `elf-prepare tokenizer --extra-ids "
        "100`");
  if (!(settings.noise_share > 0 && settings.noise_share < 1) || !(settings.mean_span >= 1)) {
    usage_error("span corruption: share ", settings.noise_share, " and mean span ", settings.mean_span,
                "; expected (0, 1) and at least 1");
  }
  if (length == 1)
    return {{settings.first_sentinel, settings.eos_id}, {settings.first_sentinel, text[0], settings.eos_id}};
  const int64_t noise =
      std::clamp<int64_t>(std::llround(static_cast<double>(length) * settings.noise_share), 1, length - 1);
  const int64_t most_spans = std::min({noise, length - noise, settings.sentinels});
  const int64_t spans =
      std::clamp<int64_t>(std::llround(static_cast<double>(noise) / settings.mean_span), 1, most_spans);
  const std::vector<int64_t> hidden = cut(noise, spans, stream, sample, 0);
  const std::vector<int64_t> kept = cut(length - noise, spans, stream, sample, static_cast<uint64_t>(length));

  CorruptedText result;
  auto place = text.begin();
  for (int64_t i = 0; i < spans; ++i) {
    const auto sentinel = static_cast<int32_t>(settings.first_sentinel - i);
    result.input.insert(result.input.end(), place, place + kept[i]);
    result.input.push_back(sentinel);
    place += kept[i];
    result.target.push_back(sentinel);
    result.target.insert(result.target.end(), place, place + hidden[i]);
    place += hidden[i];
  }
  result.input.push_back(settings.eos_id);
  result.target.push_back(settings.eos_id);
  return result;
}

}  // namespace elf
