// Whether a good perplexity is worth anything: texts that repeat themselves are likely under any language
// model. The bounds lie outside of what people write, well inside of what a collapsed sampler writes.
#pragma once

#include <string>
#include <vector>

#include "elf/metrics/diversity.h"

namespace elf {

struct DegenerationBounds {
  // Floor of the mean unigram entropy of a text, in nats, for long texts. Web text of 1,000 GPT-2 tokens has
  // about 5.4; the published ELF samples have 5.0 to 5.3.
  double entropy_floor = 4.5;
  // Short texts cannot reach it: for them the floor is this share of the mean of ln(tokens), which a text
  // without any repeated token attains. Prose of 30 tokens has about 0.93, of 150 tokens about 0.87.
  double entropy_share = 0.75;
  // Ceiling of rep-4. Web text of 1,000 tokens has about 0.03.
  double rep4 = 0.2;
};

// What is out of bounds, a sentence each: "entropy 1.20 is below 4.50"; empty: nothing is. `texts` in the
// tokens that `figures` was computed from.
std::vector<std::string> degeneration(const Diversity& figures,
                                      const std::vector<std::vector<int32_t>>& texts,
                                      const DegenerationBounds& bounds = {});

}  // namespace elf
