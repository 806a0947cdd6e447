// The datasets that preparation writes: training and, when a part is held out, validation.
#pragma once

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elf/base/files.h"
#include "elf/data/prepare.h"
#include "record_shuffle.h"

namespace elf {

// A record as it goes into a dataset: cut to fit. Documents have ids only.
struct FittedRecord {
  size_t side = 0;  // 0 = training, 1 = validation
  std::vector<int32_t> condition, ids;
  std::string source, target;
};

// Throws Error (usage): options that contradict each other, outputs that are inputs.
void check_options(const PrepareOptions& options, const std::vector<std::string>& inputs);

const char* name_of(LongText policy);

// Records in the order of their coming, or shuffled, as rows of the datasets. `pack`: documents are put one
// after the other and cut into rows of max_length; otherwise the rest of a document is a row of its own.
class PrepareOutputs {
 public:
  // Of `header`: what DatasetWriter wants. With options.append what is there is copied first; throws Error
  // (usage) naming both when it was made otherwise.
  PrepareOutputs(const PrepareOptions& options, const DatasetInfo& header, bool pack);

  // The side of a record whose hash is taken of `text`.
  size_t side_of(const std::string& text) const;
  void add(const FittedRecord& record);
  // Writes what is waiting and puts the files in place, if every one has a row.
  void finish(PrepareReport& report);

 private:
  struct Side {
    DatasetWriter writer;
    std::vector<int32_t> waiting;  // pack: tokens that do not fill a row yet
    int64_t rows_before = 0;
  };
  void open(const std::filesystem::path& path, const DatasetInfo& header);
  void write(const FittedRecord& record);
  void write_rows(Side& side, std::vector<int32_t>& ids, bool rest);

  const PrepareOptions& o_;
  bool pairs_, pack_;
  std::vector<Side> sides_;
  std::unique_ptr<RecordShuffle> shuffle_;
};

// The list of dropped records, as a file of two tab-separated columns; nothing without a name.
class DropReport {
 public:
  explicit DropReport(const std::filesystem::path& path);
  void add(const std::string& place, const std::string& reason);
  void finish();  // puts the file in place

 private:
  std::optional<AtomicFile> file_;
  std::ofstream stream_;
};

}  // namespace elf
