// Training of a SentencePiece tokenizer on the user's text, with T5's special ids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "elf/text/records.h"
#include "elf/text/sentencepiece_tokenizer.h"

namespace elf {

// What is left open (empty) follows from the model type: word and character vocabularies keep the text as it
// is.
struct TokenizerTraining {
  RecordSource source = {};            // one column
  int64_t vocab_size = 0;              // pieces, the three special ones included; extra ids come on top
  std::string model_type = "unigram";  // unigram, bpe, word (one piece a blank-separated word) or char
  int extra_ids = 100;                 // sentinels <extra_id_N>; T5's span corruption wants them
  // nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf (the last two fold the case) or identity; "" = nmt_nfkc, for word
  // and char identity.
  std::string normalization = "";
  // A blank before the text, so that a word is the same piece everywhere; open: yes, for char no.
  std::optional<bool> add_dummy_prefix = {};
  // Runs of blanks, and blanks at both ends, stay; open: no, for char yes.
  std::optional<bool> keep_extra_spaces = {};
  bool byte_fallback = false;     // unknown characters become byte pieces (unigram and bpe)
  double character_coverage = 0;  // share of the characters kept, in (0, 1]; 0 = 0.9995, for word and char 1
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
