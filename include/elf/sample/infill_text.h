// Texts with marked gaps, between what users write and token ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "elf/text/sentencepiece_tokenizer.h"

namespace elf {

// How many tokens a gap may get.
struct Gap {
  int64_t least = 1, most = 1;  // equal: of given length
};

// known[0] gap[0] known[1] ... gap[n - 1] known[n]
struct InfillText {
  std::vector<std::string> text;            // [n + 1] the known stretches as written, perhaps empty
  std::vector<std::vector<int64_t>> known;  // [n + 1] their ids
  std::vector<Gap> gaps;                    // [n]
  bool open_end = false;  // the last gap ends where the model ends the text; its Gap says nothing
};

// `<gap>` is a gap of free length (1 to `free_most` tokens; at the very end: open_end), `<gap:3>` one of
// three tokens, `<gap:2-5>` one of two to five. A stretch that starts right behind a gap, without a blank,
// goes on with the gap's last word where the tokenizer has pieces for that. Throws Error (usage) naming
// `place` for a mark that is none of these.
InfillText parse_infill(std::string_view text, const SentencePieceTokenizer& tokenizer, int64_t free_most,
                        std::string_view place);

// The known stretches as written with the fills between them; a blank is added where a fill starts a word and
// none stands before it.
std::string render_infill(const InfillText& text, const std::vector<std::vector<int64_t>>& fills,
                          const SentencePieceTokenizer& tokenizer);

}  // namespace elf
