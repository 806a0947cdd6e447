// Span corruption, the training task of T5 (Raffel et al., 2020): stretches of a text are replaced by
// sentinels, the target tells what stood there.
//   text    Thank you for inviting me to your party last week
//   input   Thank you <0> me to your party <1> week EOS
//   target  <0> for inviting <1> last EOS
#pragma once

#include <cstdint>
#include <vector>

#include "elf/tensor/random.h"

namespace elf {

struct SpanCorruption {
  double noise_share = 0.15;   // of the tokens, in (0, 1)
  double mean_span = 3.0;      // tokens of a stretch on average, >= 1
  int32_t first_sentinel = 0;  // <extra_id_0>; the others descend from it
  int64_t sentinels = 0;       // how many there are: the most stretches of a text
  int32_t eos_id = 1;
};

struct CorruptedText {
  std::vector<int32_t> input, target;
};

// Lengths of stretches and of what lies between are uniform among all ways to cut; a text of one token is
// replaced whole. Depends on (stream, sample) and the arguments only. Throws Error (usage): an empty text, no
// sentinels, shares out of range.
CorruptedText corrupt_spans(const std::vector<int32_t>& text, const SpanCorruption& settings,
                            const Stream& stream, int64_t sample);

}  // namespace elf
