#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include "elf/text/gpt2_tokenizer.h"

namespace elf {
namespace {

enum class Kind { kLetter, kNumber, kSpace, kMark, kEnd };

// The kind of the character at `place` (kEnd behind the text), and where the next one starts.
Kind kind_at(std::string_view text, size_t place, size_t& next) {
  if (place >= text.size()) return Kind::kEnd;
  auto at = static_cast<int32_t>(place);
  UChar32 c;
  U8_NEXT(reinterpret_cast<const uint8_t*>(text.data()), at, static_cast<int32_t>(text.size()), c);
  next = static_cast<size_t>(at);
  if (c < 0) return Kind::kMark;
  if ((U_GET_GC_MASK(c) & U_GC_L_MASK) != 0) return Kind::kLetter;
  if ((U_GET_GC_MASK(c) & U_GC_N_MASK) != 0) return Kind::kNumber;
  return u_isUWhiteSpace(c) ? Kind::kSpace : Kind::kMark;
}

size_t contraction_length(std::string_view rest) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (rest.starts_with(ending)) return ending.size();
  }
  return 0;
}

// Behind the run of `kind` that starts at `place`.
size_t end_of_run(std::string_view text, size_t place, Kind kind) {
  size_t next = place;
  while (kind_at(text, place, next) == kind) place = next;
  return place;
}

// Behind the white space at `begin`; its last character is left to the word that follows.
size_t end_of_space(std::string_view text, size_t begin) {
  const size_t end = end_of_run(text, begin, Kind::kSpace);
  if (end == text.size()) return end;
  size_t last = end;
  do --last;
  while ((static_cast<unsigned char>(text[last]) & 0xC0) == 0x80);
  return last > begin ? last : end;
}

}  // namespace

std::vector<std::string_view> gpt2_pieces(std::string_view text) {
  std::vector<std::string_view> pieces;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    if (const size_t length = contraction_length(text.substr(begin)); length > 0) {
      end = begin + length;
    } else {
      const size_t word = begin + (text[begin] == ' ' ? 1 : 0);
      size_t next = 0;
      const Kind kind = kind_at(text, word, next);
      end = kind == Kind::kSpace || kind == Kind::kEnd ? end_of_space(text, begin)
                                                       : end_of_run(text, word, kind);
    }
    pieces.push_back(text.substr(begin, end - begin));
  }
  return pieces;
}

}  // namespace elf
