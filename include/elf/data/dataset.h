// The HDF5 datasets that elf-prepare writes: rows of token ids, for pairs with the length of the condition
// and the raw text of both sides.
//
//   /tokens    [T] uint16 (vocabulary <= 65536) or uint32: the rows one after the other; of a pair
//              condition, then target
//   /offsets   [N + 1] uint64: row i is tokens[offsets[i] : offsets[i + 1]]
//   of pairs:
//   /cond_lengths   [N] uint32
//   /source_text, /target_text   [bytes] uint8: the raw UTF-8 texts one after the other, for scoring
//   /source_text_offsets, /target_text_offsets   [N + 1] uint64
//   attributes of /:
//     format ("elf-dataset"), format_version, kind, rows, tokens, tokenizer_hash, vocab_size, pad_id, eos_id,
//     unk_id, max_length, max_input_length, longest_row, longest_condition, data_hash, settings (JSON),
//     and complete = 1, written last.
// Chunked, deflated, with checksums.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace elf {

struct DatasetInfo {
  std::filesystem::path path;
  std::string kind = "documents";  // or "pairs"
  int64_t rows = 0;
  int64_t tokens = 0;
  std::string tokenizer_hash;
  int64_t vocab_size = 0;
  int64_t pad_id = 0, eos_id = 1, unk_id = 2;
  int64_t max_length = 0;        // no row is longer
  int64_t max_input_length = 0;  // no condition is longer; 0 for documents
  int64_t longest_row = 0, longest_condition = 0;
  std::string data_hash;  // identity of the content
  std::string settings;   // JSON: how it was made

  bool is_pairs() const { return kind == "pairs"; }
};

// Read-only, cheap to copy (copies share the data), safe to use from several threads and after fork. Opened
// without file locks.
class Dataset {
 public:
  static constexpr int64_t kMemoryLimit = int64_t{1} << 30;

  // Token data of up to `memory_limit` bytes are kept in memory, larger ones are read row by row. Throws
  // Error (usage) naming the file and what is wrong: missing, LFS pointer, no HDF5, cut short, not complete,
  // counts that do not fit, ids outside the vocabulary.
  static Dataset open(const std::filesystem::path& path, int64_t memory_limit = kMemoryLimit);

  const DatasetInfo& info() const;
  // Throws Error (usage) naming both tokenizers unless the dataset was made with this one.
  void require_tokenizer(const std::string& hash, int64_t vocab_size) const;

  // row in [0, rows); anything else throws Error (usage).
  std::vector<int32_t> tokens(int64_t row) const;
  int64_t length(int64_t row) const;
  int64_t cond_length(int64_t row) const;      // 0 for documents
  std::string source_text(int64_t row) const;  // "" for documents
  std::string target_text(int64_t row) const;

 private:
  struct Impl;
  explicit Dataset(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

// Writes a dataset row by row with flat memory. The file appears under its name only by finish(); without it
// nothing is left.
class DatasetWriter {
 public:
  // Of `header`: kind, tokenizer_hash, vocab_size, the special ids, max lengths and settings; the rest is
  // counted.
  DatasetWriter(const std::filesystem::path& path, const DatasetInfo& header);
  ~DatasetWriter();
  DatasetWriter(DatasetWriter&&) noexcept;

  void add_document(const std::vector<int32_t>& ids);
  void add_pair(const std::vector<int32_t>& condition, const std::vector<int32_t>& target,
                const std::string& source_text, const std::string& target_text);
  int64_t rows() const;

  // Closes the temporary file, complete; finish() then puts it under its name. (Two steps, so that two files
  // can be put in place together.)
  const DatasetInfo& close();
  const DatasetInfo& finish();

  // What info().data_hash of this content has to be: every row is read and hashed again, texts included.
  // Throws Error (usage) where it cannot be read.
  static std::string content_hash(const Dataset& dataset);

 private:
  struct Impl;
  explicit DatasetWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace elf
