#include <algorithm>
#include <cstring>
#include <optional>

#include "dataset_format.h"
#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "elf/data/dataset.h"
#include "hdf5.h"

namespace elf {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kChunk = int64_t{1} << 14;    // elements: what one row costs to unpack
constexpr int64_t kBlock = int64_t{1} << 18;    // elements gathered before they are written: whole chunks
constexpr int64_t kNarrowVocabulary = 1 << 16;  // ids below fit uint16
constexpr size_t kLongestSettings = 60'000;     // an HDF5 attribute holds 64 KiB

// Elements of one type on their way to the file, and into the digest; without a file into the digest only.
template <class T>
class Column {
 public:
  Column(const hdf5::Handle& file, const char* name, hid_t type) {
    if (file) array_.emplace(file, name, type, kChunk);
  }

  template <class Iterator>
  void add(Iterator begin, Iterator end, std::string& hash) {
    for (; begin != end; ++begin) {
      waiting_.push_back(static_cast<T>(*begin));
      if (static_cast<int64_t>(waiting_.size()) == kBlock) flush(hash);
    }
  }
  void add(T value, std::string& hash) { add(&value, &value + 1, hash); }

  // Writes what is waiting and folds it into the running digest.
  void flush(std::string& hash) {
    if (array_) array_->append(waiting_.data(), static_cast<int64_t>(waiting_.size()));
    hash = digest(hash.append(reinterpret_cast<const char*>(waiting_.data()), waiting_.size() * sizeof(T)));
    waiting_.clear();
  }

 private:
  std::optional<hdf5::GrowingArray> array_;
  std::vector<T> waiting_;
};

struct TextColumn {
  TextColumn(const hdf5::Handle& file, const char* name, const char* offsets_name)
      : bytes(file, name, hdf5::uint8_type()), offsets(file, offsets_name, hdf5::uint64_type()) {}

  void add(const std::string& text, std::string& hash) {
    bytes.add(text.begin(), text.end(), hash);
    offsets.add(total += text.size(), hash);
  }
  void flush(std::string& hash) {
    bytes.flush(hash);
    offsets.flush(hash);
  }
  Column<uint8_t> bytes;
  Column<uint64_t> offsets;
  uint64_t total = 0;
};

// What interrupted runs left beside `path`: they cannot be told from runs of another machine, hence only
// named.
void warn_of_leftovers(const fs::path& path, const fs::path& own) {
  const std::string prefix = "." + path.filename().string() + ".";
  std::error_code none;
  for (const auto& entry :
       fs::directory_iterator(path.has_parent_path() ? path.parent_path() : fs::path("."), none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".tmp") && name != own.filename()) {
      log_warning(
          cat(entry.path().string(),
              " is left over from an interrupted run (or another is writing it now); remove it if none is"));
    }
  }
}

}  // namespace

struct DatasetWriter::Impl {
  Impl(const fs::path& path, const DatasetInfo& header) : info(header) {
    if (!path.empty()) {
      target.emplace(path);
      file = hdf5::create_file(target->temporary());
    }
    offsets.emplace_back(file, format::kOffsets, hdf5::uint64_type());
    if (header.vocab_size <= kNarrowVocabulary) {
      narrow.emplace_back(file, format::kTokens, hdf5::uint16_type());
    } else {
      wide.emplace_back(file, format::kTokens, hdf5::uint32_type());
    }
    offsets[0].add(0, info.data_hash);
    if (!info.is_pairs()) return;
    cond_lengths.emplace_back(file, format::kCondLengths, hdf5::uint32_type());
    texts.emplace_back(file, format::kSourceText, format::kSourceTextOffsets);
    texts.emplace_back(file, format::kTargetText, format::kTargetTextOffsets);
    for (TextColumn& text : texts) text.offsets.add(0, info.data_hash);
  }

  void add_tokens(const std::vector<int32_t>& ids) {
    for (const int32_t id : ids) {
      if (id < 0 || id >= info.vocab_size)
        usage_error("row ", info.rows, ": token ", id, ", the vocabulary has ", info.vocab_size);
    }
    for (auto& column : narrow) column.add(ids.begin(), ids.end(), info.data_hash);
    for (auto& column : wide) column.add(ids.begin(), ids.end(), info.data_hash);
    info.tokens += static_cast<int64_t>(ids.size());
  }

  void end_row(size_t condition, size_t target_length) {
    const auto length = static_cast<int64_t>(condition + target_length);
    if (length == 0 || length > info.max_length)
      usage_error("row ", info.rows, ": ", length, " tokens, expected 1 to ", info.max_length);
    offsets[0].add(static_cast<uint64_t>(info.tokens), info.data_hash);
    info.longest_row = std::max(info.longest_row, length);
    info.longest_condition = std::max(info.longest_condition, static_cast<int64_t>(condition));
    ++info.rows;
  }

  template <class Use>
  void for_each_column(Use use) {
    for (auto& column : offsets) use(column);
    for (auto& column : narrow) use(column);
    for (auto& column : wide) use(column);
    for (auto& column : cond_lengths) use(column);
    for (auto& column : texts) use(column);
  }

  void end_digest() {
    for_each_column([&](auto& column) { column.flush(info.data_hash); });
    info.data_hash = digest(info.data_hash + info.kind + info.tokenizer_hash);
  }

  void close_columns() {
    offsets.clear();
    narrow.clear();
    wide.clear();
    cond_lengths.clear();
    texts.clear();
  }

  std::optional<AtomicFile> target;  // outlives the handles below
  hdf5::Handle file;                 // none: only the digest is made
  DatasetInfo info;
  std::vector<Column<uint64_t>> offsets;  // one
  std::vector<Column<uint16_t>> narrow;   // one of the two
  std::vector<Column<uint32_t>> wide;
  std::vector<Column<uint32_t>> cond_lengths;
  std::vector<TextColumn> texts;  // source, target
};

DatasetWriter::DatasetWriter(const fs::path& path, const DatasetInfo& header) {
  DatasetInfo start = header;
  start.path = path;
  start.rows = start.tokens = start.longest_row = start.longest_condition = 0;
  start.data_hash.clear();
  if (start.settings.size() > kLongestSettings) start.settings = "{}";
  if (path.has_parent_path()) make_folder(path.parent_path());
  impl_ = std::make_unique<Impl>(path, start);
  warn_of_leftovers(path, impl_->target->temporary());
}

DatasetWriter::DatasetWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DatasetWriter::~DatasetWriter() = default;
DatasetWriter::DatasetWriter(DatasetWriter&&) noexcept = default;

void DatasetWriter::add_document(const std::vector<int32_t>& ids) {
  impl_->add_tokens(ids);
  impl_->end_row(0, ids.size());
}

void DatasetWriter::add_pair(const std::vector<int32_t>& condition, const std::vector<int32_t>& target,
                             const std::string& source_text, const std::string& target_text) {
  Impl& w = *impl_;
  w.add_tokens(condition);
  w.add_tokens(target);
  w.cond_lengths.at(0).add(static_cast<uint32_t>(condition.size()), w.info.data_hash);
  w.texts.at(0).add(source_text, w.info.data_hash);
  w.texts.at(1).add(target_text, w.info.data_hash);
  w.end_row(condition.size(), target.size());
}

int64_t DatasetWriter::rows() const {
  return impl_->info.rows;
}

const DatasetInfo& DatasetWriter::close() {
  Impl& w = *impl_;
  if (!w.file) return w.info;
  w.end_digest();
  hdf5::write_attribute(w.file, "format", format::kName);
  hdf5::write_attribute(w.file, "format_version", format::kVersion);
  hdf5::write_attribute(w.file, "kind", w.info.kind);
  for (const auto& [key, field] : format::integer_fields()) hdf5::write_attribute(w.file, key, w.info.*field);
  for (const auto& [key, field] : format::text_fields()) hdf5::write_attribute(w.file, key, w.info.*field);
  hdf5::flush(w.file);  // what cannot be written shows here, before the file says that it is complete
  hdf5::write_attribute(w.file, "complete", int64_t{1});
  hdf5::flush(w.file);
  w.close_columns();
  if (!w.file.close()) environment_error(w.info.path.string(), ": cannot be written: ", hdf5::reason());
  return w.info;
}

const DatasetInfo& DatasetWriter::finish() {
  close();
  impl_->target->commit();
  return impl_->info;
}

std::string DatasetWriter::content_hash(const Dataset& dataset) {
  const DatasetInfo& info = dataset.info();
  DatasetInfo start = info;
  start.rows = start.tokens = 0;
  start.data_hash.clear();
  DatasetWriter again(std::make_unique<Impl>("", start));
  for (int64_t row = 0; row < info.rows; ++row) {
    const std::vector<int32_t> ids = dataset.tokens(row);
    if (!info.is_pairs()) {
      again.add_document(ids);
      continue;
    }
    const auto target = ids.begin() + dataset.cond_length(row);
    again.add_pair({ids.begin(), target}, {target, ids.end()}, dataset.source_text(row),
                   dataset.target_text(row));
  }
  again.impl_->end_digest();
  return again.impl_->info.data_hash;
}

}  // namespace elf
