// Training of a SentencePiece tokenizer on the user's text, with T5's special ids.
#pragma once

#include <cstdint>
#include <string>

#include "elf/text/records.h"
#include "elf/text/sentencepiece_tokenizer.h"

namespace elf {

struct TokenizerTraining {
  RecordSource source = {};            // one column
  int64_t vocab_size = 0;              // pieces, the three special ones included; extra ids come on top
  std::string model_type = "unigram";  // unigram, bpe, word (one piece a blank-separated word) or char
  int extra_ids = 100;                 // sentinels <extra_id_N>; T5's span corruption wants them
  std::string normalization =
      "nmt_nfkc";  // or nfkc, nmt_nfkc_cf, nfkc_cf (case folded), identity (text comes back as it was)
  bool add_dummy_prefix = true;    // a blank before the text, so that a word is the same piece everywhere
  bool keep_extra_spaces = false;  // runs of blanks, and blanks at both ends, stay
  bool byte_fallback = false;      // unknown characters become byte pieces (unigram and bpe)
  double character_coverage = 0;  // share of the characters to be kept, in (0, 1]; 0 = 0.9995 for unigram and
                                  // bpe, 1 for word and char
  bool soft_vocab_limit = false;  // fewer pieces than vocab_size are fine (always so for word and char)
  int64_t max_records = 10'000'000;  // an even sample of so many records is used when there are more; 0 = all
};

struct TrainingCounts {
  int64_t records_read = 0;
  int64_t records_used = 0;
  int64_t skipped = 0;  // blank, or dropped for bad text
};

struct TrainedTokenizer {
  SentencePieceTokenizer tokenizer;
  TrainingCounts counts;
};

// Deterministic: the same text and settings give the same bytes. Memory: the sampled text. Throws Error
// (usage) naming what is wrong: no text, a vocabulary larger than the text can fill (with the largest
// possible) or too small for its characters.
TrainedTokenizer train_tokenizer(const TokenizerTraining& training);

}  // namespace elf
