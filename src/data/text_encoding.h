// Records on their way from text to tokens: encoded by several threads, counted in order.
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

// Fills `encoded`. For several threads at once.
void encode_record(EncodedRecord& record, const SentencePieceTokenizer& tokenizer);

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
