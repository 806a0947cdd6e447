// Records on their way from text to tokens: encoded on all cores, counted in order.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "elf/data/prepare.h"

namespace elf {

struct EncodedText {
  std::vector<int32_t> ids;          // without EOS
  bool comes_back = false;           // decoding gives the text
  bool line_breaks = false;          // some became blanks
  std::vector<std::string> unknown;  // stretches without a piece
};

// One record (or pair) with its encodings, one per column.
struct EncodedRecord {
  std::string place;
  std::vector<std::string> texts;
  bool bad = false;
  std::vector<EncodedText> encoded;
};

// Fills `encoded` of each record that is not bad, on `threads` threads (0 = all cores).
void encode_records(std::vector<EncodedRecord>& records, const SentencePieceTokenizer& tokenizer,
                    int threads);

// Gathers a ColumnReport text by text.
class ColumnCounter {
 public:
  ColumnCounter(std::string name, const SentencePieceTokenizer& tokenizer);
  void add(const EncodedText& text);
  ColumnReport report() const;

 private:
  ColumnReport counts_;
  int32_t unk_id_;
  bool words_;  // uncovered stretches are words, not characters
  std::map<std::string, int64_t> uncovered_;
};

}  // namespace elf
