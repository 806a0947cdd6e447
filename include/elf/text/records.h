// The one reader of the user's text: records from text, TSV and JSONL files, plain or gzip-compressed, one
// after the other, with flat memory.
//
// Text is UTF-8. A record ends at LF only; one CR before it and a leading byte order mark are dropped (the
// mark with a notice); U+2028, U+0085, VT and FF stay inside a record. UTF-16 is refused. Invalid UTF-8 and
// NUL bytes are errors that name file, line and byte, unless they are to be replaced or dropped.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace elf {

enum class RecordFormat {
  kAuto,  // kJsonl for names that end in .jsonl, .ndjson or .json (before .gz) and wherever fields are given;
          // else kLines
  kLines,  // one column: the line
  kTsv,    // columns separated by tabs; no quoting
  kJsonl,  // one JSON object a line; a column for each of `fields`; blank lines are skipped
};

// What to do with a record that holds invalid UTF-8 or a NUL.
enum class BadText {
  kError,
  kReplace,  // each bad sequence becomes U+FFFD
  kDrop,     // the record comes with bad = true, so that its partner in another file can be dropped too
};
BadText parse_bad_text(const std::string& name);  // "error", "replace", "drop"; throws Error (usage)

struct RecordSource {
  std::vector<std::string> files = {};  // "-" = standard input
  RecordFormat format = RecordFormat::kAuto;
  std::vector<std::string> fields = {};  // JSONL: key of each column, nested as in "a.b"; empty = {"text"}
  int64_t columns = 1;  // TSV: columns that every line must have; 0 = as many as the first line of the file
  std::vector<int64_t> take = {};  // TSV: the columns wanted, from 0, in this order; empty = all
  BadText bad_text = BadText::kError;
};

struct Record {
  std::vector<std::string> columns = {};
  size_t file = 0;   // index into RecordSource::files
  int64_t line = 0;  // in that file, from 1
  bool bad = false;  // BadText::kDrop only: to be dropped; the columns are empty
};

class RecordReader {
 public:
  explicit RecordReader(RecordSource source);
  ~RecordReader();
  RecordReader(RecordReader&&) noexcept;

  // The next record; false at the end of the last file. Throws Error (usage): missing file, bad text, wrong
  // number of columns, no JSON, missing field; names file and line.
  bool next(Record& record);

  const RecordSource& source() const;
  // "corpus.txt:12"
  std::string place_of(const Record& record) const;
  int64_t replaced() const;     // records in which bad bytes were replaced
  int64_t bad() const;          // records that came with bad = true
  int64_t bytes_read() const;   // of the (compressed) files so far, for progress
  int64_t bytes_total() const;  // of all files; 0 when one is not a regular file

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The files that each name stands for: itself, or, where it holds * ? or [ and no file of that name exists,
// the files that match it, sorted. Throws Error (usage) for a pattern that matches none.
std::vector<std::string> expand_files(const std::vector<std::string>& names);

// All records of one column, in memory: for evaluation sets, not for corpora.
std::vector<std::string> read_records(const RecordSource& source);

}  // namespace elf
