// From the user's text to HDF5 datasets: documents (corpus) and source-target pairs. Memory does not grow
// with the text; encoding runs on all cores and the result does not depend on their number. Every record is
// either kept or counted with the reason it was not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "elf/data/dataset.h"
#include "elf/text/records.h"
#include "elf/text/sentencepiece_tokenizer.h"

namespace elf {

// A text of more tokens than a row holds (its EOS counts).
enum class LongText {
  kSplit,     // documents only: cut into rows; EOS ends the last
  kTruncate,  // the first tokens are kept, without an EOS: the text does not end there
  kDrop,
};
LongText parse_long_text(const std::string& name);  // "split", "truncate", "drop"; throws Error (usage)

struct PrepareOptions {
  std::filesystem::path out;
  int64_t max_length = 0;  // L: no row is longer
  LongText long_text = LongText::kTruncate;
  bool eos = true;  // an EOS after each document / each target
  double valid_fraction =
      0;  // share of the records that goes to valid_out, by a hash of the text: equal texts land on one side
  std::filesystem::path valid_out;
  int64_t max_records = 0;  // records read; 0 = all
  bool allow_unknown =
      false;        // more than kMostUnknown of unknown tokens in a column is a warning, not an error
  int threads = 0;  // 0 = all cores
  // The records in an order that depends on the seed and their number only, not as read; tokens then wait in
  // a temporary file beside `out`.
  std::optional<uint64_t> shuffle_seed;
  bool append = false;                // the rows of `out` (and valid_out), where they exist, come first
  std::filesystem::path drop_report;  // place and reason of every dropped record, a line each; "" = none
};

// Share of unknown tokens above which the tokenizer does not fit the text.
inline constexpr double kMostUnknown = 0.05;

struct CorpusOptions : PrepareOptions {
  RecordSource source;
  bool pack = false;  // documents one after the other, EOS between them, cut into rows of max_length
};

struct PairsOptions : PrepareOptions {
  // Two sources of one column each, read side by side, or one source of two columns (TSV, or JSONL with two
  // fields).
  RecordSource source;
  std::optional<RecordSource> target;
  int64_t max_input_length = 0;  // S: no condition is longer; a target has at most max_length - S tokens,
                                 // since sampling keeps so many
  bool split_by_target = false;  // the hash of valid_fraction is of the target's text instead of the source's
};

struct ColumnReport {
  std::string name;
  int64_t texts = 0, tokens = 0, unknown = 0;  // tokens without EOS
  int64_t longest = 0;                         // tokens of the longest text
  int64_t round_trips = 0;                     // texts that come back exactly from their tokens
  std::vector<std::pair<std::string, int64_t>>
      uncovered;  // the commonest characters (word models: words) that became unknown: at most five

  double unknown_rate() const {
    return tokens == 0 ? 0.0 : static_cast<double>(unknown) / static_cast<double>(tokens);
  }
};

struct PrepareReport {
  int64_t records = 0, kept = 0;
  int64_t blank = 0, bad_text = 0,
          too_long = 0;  // dropped: nothing in it (pairs: on either side); bad UTF-8; longer than a row
  int64_t truncated = 0, split = 0;                          // kept, but cut
  int64_t replaced = 0;                                      // kept with U+FFFD for bad bytes
  int64_t line_breaks = 0;                                   // texts whose line breaks became blanks
  std::vector<std::pair<std::string, std::string>> dropped;  // place and reason of the first kListedDrops
  std::vector<ColumnReport> columns;
  int64_t rows_before = 0;  // PrepareOptions::append: rows that were there
  DatasetInfo train;
  std::optional<DatasetInfo> valid;
};
inline constexpr size_t kListedDrops = 20;

// Throw Error (usage) naming the options or the place in the text: impossible lengths, unequal counts of
// source and target, too many unknown tokens, nothing kept. Then no file is left.
PrepareReport prepare_corpus(const CorpusOptions& options, const SentencePieceTokenizer& tokenizer);
PrepareReport prepare_pairs(const PairsOptions& options, const SentencePieceTokenizer& tokenizer);

// The closing report.
std::string report_text(const PrepareReport& report);
nlohmann::ordered_json report_json(const PrepareReport& report);

// A number in [0, 1) that depends on the text only: which side of a split it goes to.
double split_position(const std::string& text);

}  // namespace elf
