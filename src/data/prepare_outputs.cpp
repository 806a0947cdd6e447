#include "prepare_outputs.h"

#include <cstring>

#include "elf/base/error.h"
#include "elf/base/outputs.h"
#include "elf/base/progress.h"

namespace elf {
namespace fs = std::filesystem;
namespace {

using Ids = std::vector<int32_t>;

// A record as one byte string: the side, then each part with its size before it.
void put(std::string& bytes, const void* data, uint64_t size) {
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size)
      .append(static_cast<const char*>(data), size);
}

std::string_view get(std::string_view& bytes) {
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  const std::string_view part = bytes.substr(sizeof size, size);
  bytes.remove_prefix(sizeof size + size);
  return part;
}

Ids get_ids(std::string_view& bytes) {
  const std::string_view part = get(bytes);
  Ids ids(part.size() / sizeof(int32_t));
  if (!ids.empty()) std::memcpy(ids.data(), part.data(), part.size());
  return ids;
}

std::string to_bytes(const FittedRecord& record) {
  std::string bytes(1, static_cast<char>(record.side));
  for (const Ids* ids : {&record.condition, &record.ids})
    put(bytes, ids->data(), ids->size() * sizeof(int32_t));
  for (const std::string* text : {&record.source, &record.target}) put(bytes, text->data(), text->size());
  return bytes;
}

FittedRecord from_bytes(std::string_view bytes) {
  FittedRecord record;
  record.side = static_cast<size_t>(bytes.front());
  bytes.remove_prefix(1);
  record.condition = get_ids(bytes);
  record.ids = get_ids(bytes);
  record.source = get(bytes);
  record.target = get(bytes);
  return record;
}

// Throws unless rows of `old` can stand in a dataset of `header`.
void require_same_making(const DatasetInfo& old, const DatasetInfo& header) {
  const auto differ = [&](const char* what, const auto& before, const auto& now) {
    if (before == now) return;
    usage_error(old.path.string(), ": cannot be appended to: its ", what, " is ", before,
                ", that of the new rows ", now, "; use the same settings, or another --out");
  };
  differ("kind", old.kind, header.kind);
  differ("tokenizer", old.tokenizer_hash, header.tokenizer_hash);
  differ("vocabulary", old.vocab_size, header.vocab_size);
  differ("--max-length", old.max_length, header.max_length);
  differ("--max-input-length", old.max_input_length, header.max_input_length);
}

void copy_rows(const Dataset& from, DatasetWriter& to) {
  Progress progress("copy", from.info().rows, "rows");
  for (int64_t row = 0; row < from.info().rows; ++row) {
    const Ids ids = from.tokens(row);
    if (from.info().is_pairs()) {
      const auto target = ids.begin() + from.cond_length(row);
      to.add_pair({ids.begin(), target}, {target, ids.end()}, from.source_text(row), from.target_text(row));
    } else {
      to.add_document(ids);
    }
    progress.update(row + 1);
  }
}

}  // namespace

const char* name_of(LongText policy) {
  return policy == LongText::kSplit ? "split" : policy == LongText::kTruncate ? "truncate" : "drop";
}

void check_options(const PrepareOptions& o, const std::vector<std::string>& inputs) {
  if (o.out.empty()) usage_error("--out is not given");
  constexpr int64_t kLongest = 1 << 20;  // as in configurations
  if (o.max_length < 1 || o.max_length > kLongest)
    usage_error("--max-length is ", o.max_length, ", expected 1 to ", kLongest);
  if (!(o.valid_fraction >= 0 && o.valid_fraction < 1))
    usage_error("--valid-fraction is ", o.valid_fraction, ", expected [0, 1)");
  if ((o.valid_fraction > 0) != !o.valid_out.empty())
    usage_error("--valid-fraction and --valid-out go together");
  refuse_overwriting(o.out, {o.valid_out.string()});
  refuse_overwriting(o.drop_report, {o.out.string(), o.valid_out.string()});
  for (const fs::path& out : {o.out, o.valid_out, o.drop_report}) refuse_overwriting(out, inputs);
}

PrepareOutputs::PrepareOutputs(const PrepareOptions& o, const DatasetInfo& header, bool pack)
    : o_(o), pairs_(header.is_pairs()), pack_(pack) {
  open(o.out, header);
  if (o.valid_fraction > 0) open(o.valid_out, header);
  if (o.shuffle_seed) shuffle_ = std::make_unique<RecordShuffle>(o.out.parent_path(), *o.shuffle_seed);
}

void PrepareOutputs::open(const fs::path& path, const DatasetInfo& header) {
  std::optional<Dataset> old;
  if (o_.append && fs::exists(path)) {
    old = Dataset::open(path, /*memory_limit=*/0);
    require_same_making(old->info(), header);
  }
  sides_.push_back({DatasetWriter(path, header), {}, old ? old->info().rows : 0});
  if (old) copy_rows(*old, sides_.back().writer);
}

size_t PrepareOutputs::side_of(const std::string& text) const {
  return o_.valid_fraction > 0 && split_position(text) < o_.valid_fraction ? 1 : 0;
}

void PrepareOutputs::add(const FittedRecord& record) {
  if (shuffle_) {
    shuffle_->add(to_bytes(record));
  } else {
    write(record);
  }
}

void PrepareOutputs::write(const FittedRecord& record) {
  Side& side = sides_.at(record.side);
  if (pairs_) {
    side.writer.add_pair(record.condition, record.ids, record.source, record.target);
  } else {
    side.waiting.insert(side.waiting.end(), record.ids.begin(), record.ids.end());
    write_rows(side, side.waiting, /*rest=*/!pack_);
  }
}

// Full rows of `ids`, which are taken away; with `rest` the last, shorter one too.
void PrepareOutputs::write_rows(Side& side, Ids& ids, bool rest) {
  const int64_t length = o_.max_length;
  int64_t done = 0;
  const auto count = static_cast<int64_t>(ids.size());
  for (; count - done >= length || (rest && done < count); done += std::min(length, count - done)) {
    side.writer.add_document({ids.begin() + done, ids.begin() + std::min(count, done + length)});
  }
  ids.erase(ids.begin(), ids.begin() + done);
}

void PrepareOutputs::finish(PrepareReport& report) {
  if (shuffle_) {
    Progress progress("shuffle", report.kept, "records");
    int64_t done = 0;
    shuffle_->for_each([&](std::string_view bytes) {
      write(from_bytes(bytes));
      progress.update(++done);
    });
    shuffle_.reset();
  }
  for (Side& side : sides_) {
    write_rows(side, side.waiting, /*rest=*/true);
    const DatasetInfo& info = side.writer.close();
    if (info.rows == 0)
      usage_error(info.path.string(), ": no row for it: ", report.records, " records read, ", report.kept,
                  " kept");
  }
  report.rows_before = sides_[0].rows_before;
  report.train = sides_[0].writer.finish();
  if (sides_.size() > 1) report.valid = sides_[1].writer.finish();
}

DropReport::DropReport(const fs::path& path) {
  if (path.empty()) return;
  file_.emplace(path);
  stream_.open(file_->temporary());
  if (!stream_) usage_error(path.string(), ": cannot be made; does its folder exist?");
}

void DropReport::add(const std::string& place, const std::string& reason) {
  if (file_) stream_ << place << '\t' << reason << '\n';
}

void DropReport::finish() {
  if (!file_) return;
  stream_.close();
  if (!stream_) environment_error(file_->temporary().string(), ": cannot be written (is the disk full?)");
  file_->commit();
}

}  // namespace elf
