#include "elf/data/prepare.h"

#include <cstdlib>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "elf/base/outputs.h"
#include "elf/base/progress.h"
#include "elf/text/unicode.h"
#include "elf/version.h"
#include "text_encoding.h"

namespace elf {
namespace {

using Json = nlohmann::ordered_json;
using Ids = std::vector<int32_t>;

constexpr size_t kBatchRecords = 4096;
constexpr size_t kBatchBytes = size_t{4} << 20;

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
  for (const std::filesystem::path& out : {o.out, o.valid_out}) refuse_overwriting(out, inputs);
}

Json settings_of(const PrepareOptions& o, const char* tool, const RecordSource& source) {
  Json files = source.files;
  if (files.size() > kListedDrops) files.erase(files.begin() + kListedDrops, files.end());
  return {{"tool", cat("elf-prepare ", tool, " ", ELF_VERSION)},
          {"files", files},
          {"long", name_of(o.long_text)},
          {"eos", o.eos},
          {"valid_fraction", o.valid_fraction},
          {"max_records", o.max_records}};
}

DatasetInfo header_of(const PrepareOptions& o, const SentencePieceTokenizer& tokenizer, const char* kind,
                      const Json& settings) {
  DatasetInfo header;
  header.kind = kind;
  header.tokenizer_hash = tokenizer.hash();
  header.vocab_size = tokenizer.size();
  header.pad_id = tokenizer.pad_id();
  header.eos_id = tokenizer.eos_id();
  header.unk_id = tokenizer.unk_id();
  header.max_length = o.max_length;
  Json all = settings;
  all["extra_ids"] = tokenizer.extra_ids();  // `elf-prepare encoder` hides stretches of text behind them
  header.settings = all.dump();
  return header;
}

// The files being written: training and, when a part is held out, validation.
class Outputs {
 public:
  Outputs(const PrepareOptions& o, const DatasetInfo& header) : fraction_(o.valid_fraction) {
    writers_.emplace_back(o.out, header);
    if (fraction_ > 0) writers_.emplace_back(o.valid_out, header);
  }

  // 0 = training, 1 = validation.
  size_t side_of(const std::string& text) const {
    return fraction_ > 0 && split_position(text) < fraction_ ? 1 : 0;
  }
  DatasetWriter& writer(size_t side) { return writers_.at(side); }
  size_t sides() const { return writers_.size(); }

  void finish(PrepareReport& report) {
    for (DatasetWriter& writer : writers_) {
      const DatasetInfo& info = writer.close();
      if (info.rows == 0)
        usage_error(info.path.string(), ": no row for it: ", report.records, " records read, ", report.kept,
                    " kept");
    }
    report.train = writers_[0].finish();
    if (writers_.size() > 1) report.valid = writers_[1].finish();
  }

 private:
  double fraction_;
  std::vector<DatasetWriter> writers_;
};

void check_unknown(const std::vector<ColumnReport>& columns, bool allowed) {
  for (const ColumnReport& column : columns) {
    if (column.unknown_rate() <= kMostUnknown) continue;
    std::string list;
    for (const auto& [thing, count] : column.uncovered)
      list += cat(list.empty() ? "" : ", ", "'", thing, "' (", count, ")");
    char rate[32];
    std::snprintf(rate, sizeof rate, "%.1f %%", 100 * column.unknown_rate());
    const std::string message =
        cat("column '", column.name, "': ", rate,
            " of its tokens are unknown to the tokenizer (limit 5 %); commonest uncovered: ", list);
    if (!allowed)
      usage_error(message, "; train a tokenizer on this text (elf-prepare tokenizer), or pass --allow-unk");
    log_warning(message);
  }
}

// The loop that corpus and pairs share: read(record) fills place, texts and bad (false at the end),
// take(record) gets what has text in every column, encoded, in order. Counts the rest.
template <class Read, class Take>
void for_each_encoded(const PrepareOptions& o, const SentencePieceTokenizer& tokenizer,
                      const std::vector<std::string>& names, const RecordReader& reader,
                      PrepareReport& report, Read read, Take take) {
  std::vector<ColumnCounter> columns;
  for (const std::string& name : names) columns.emplace_back(name, tokenizer);
  Progress progress("prepare", reader.bytes_total() >> 10, "KiB");
  const auto drop = [&](const EncodedRecord& record, int64_t& counter, const char* reason) {
    ++counter;
    if (report.dropped.size() < kListedDrops) report.dropped.emplace_back(record.place, reason);
  };
  const auto use = [&](const EncodedRecord& record) {
    if (record.bad) return drop(record, report.bad_text, "invalid UTF-8 or NUL");
    bool blank = false, line_breaks = false;
    for (size_t c = 0; c < columns.size(); ++c) {
      blank |= record.encoded[c].ids.empty() || is_blank(record.texts[c]);
      line_breaks |= record.encoded[c].line_breaks;
    }
    if (blank) return drop(record, report.blank, names.size() > 1 ? "an empty side" : "blank");
    report.line_breaks += line_breaks;
    for (size_t c = 0; c < columns.size(); ++c) columns[c].add(record.encoded[c]);
    if (take(record)) {
      ++report.kept;
    } else {
      drop(record, report.too_long, "too long");
    }
  };
  for (bool more = true; more;) {
    std::vector<EncodedRecord> batch;
    for (size_t bytes = 0; more && batch.size() < kBatchRecords && bytes < kBatchBytes;) {
      EncodedRecord record;
      more = (o.max_records == 0 || report.records < o.max_records) && read(record);
      if (!more) break;
      ++report.records;
      for (const std::string& text : record.texts) bytes += text.size();
      batch.push_back(std::move(record));
    }
    encode_records(batch, tokenizer, o.threads);
    for (const EncodedRecord& record : batch) use(record);
    progress.update(reader.bytes_read() >> 10, cat(report.records, " records"));
  }
  report.replaced = reader.replaced();
  for (const ColumnCounter& column : columns) report.columns.push_back(column.report());
}

// Rows of one document. Packed documents share rows: what does not fill one waits for the next document.
class Rows {
 public:
  Rows(const CorpusOptions& o, int32_t eos, DatasetWriter& writer) : o_(o), eos_(eos), writer_(writer) {}

  // false: dropped as too long.
  bool add(Ids ids, PrepareReport& report) {
    if (o_.eos) ids.push_back(eos_);
    const auto length = static_cast<size_t>(o_.max_length);
    if (o_.pack) {
      waiting_.insert(waiting_.end(), ids.begin(), ids.end());
      write_rows(waiting_, /*rest=*/false);
      return true;
    }
    if (ids.size() > length) {
      if (o_.long_text == LongText::kDrop) return false;
      if (ids.size() > length + (o_.eos ? 1 : 0))
        ++(o_.long_text == LongText::kSplit ? report.split : report.truncated);
      if (o_.long_text == LongText::kTruncate) ids.resize(length);
      if (ids.size() % length == 1 && ids.back() == eos_) ids.pop_back();  // no row of an EOS alone
    }
    write_rows(ids, /*rest=*/true);
    return true;
  }
  void finish() { write_rows(waiting_, /*rest=*/true); }

 private:
  // Full rows of `ids`, which are taken away; with `rest` the last, shorter one too.
  void write_rows(Ids& ids, bool rest) {
    const auto length = o_.max_length;
    int64_t done = 0;
    const auto count = static_cast<int64_t>(ids.size());
    for (; count - done >= length || (rest && done < count); done += std::min(length, count - done)) {
      writer_.add_document({ids.begin() + done, ids.begin() + std::min(count, done + length)});
    }
    ids.erase(ids.begin(), ids.begin() + done);
  }

  const CorpusOptions& o_;
  int32_t eos_;
  DatasetWriter& writer_;
  Ids waiting_;
};

// Pairs from one source of two columns, or from two sources side by side.
class PairReader {
 public:
  explicit PairReader(const PairsOptions& o) : source_(o.source) {
    if (o.target) target_.emplace(*o.target);
  }

  bool next(EncodedRecord& pair) {
    Record left, right;
    const bool more = source_.next(left);
    if (target_ && target_->next(right) != more) refuse_unequal(more);
    if (!more) return false;
    ++count_;
    pair.place = source_.place_of(left);
    pair.bad = left.bad || right.bad;
    if (pair.bad) return true;
    pair.texts = std::move(left.columns);
    for (std::string& column : right.columns) pair.texts.push_back(std::move(column));
    if (pair.texts.size() != 2)
      usage_error(pair.place, ": ", pair.texts.size(), " columns, expected a source and a target");
    return true;
  }

  const RecordReader& source() const { return source_; }
  int64_t replaced_in_target() const { return target_ ? target_->replaced() : 0; }

 private:
  [[noreturn]] void refuse_unequal(bool source_goes_on) {
    int64_t longer = count_ + 1;
    RecordReader& reader = source_goes_on ? source_ : *target_;
    for (Record rest; reader.next(rest);) ++longer;
    const auto names = [](const RecordReader& r) {
      std::string list;
      for (const std::string& file : r.source().files) list += (list.empty() ? "" : " + ") + file;
      return list;
    };
    usage_error("source and target differ in number: ", names(source_), " has ",
                source_goes_on ? longer : count_, " records, ", names(*target_), " has ",
                source_goes_on ? count_ : longer, "; line i of one must belong to line i of the other");
  }

  RecordReader source_;
  std::optional<RecordReader> target_;
  int64_t count_ = 0;
};

}  // namespace

LongText parse_long_text(const std::string& name) {
  for (const LongText policy : {LongText::kSplit, LongText::kTruncate, LongText::kDrop}) {
    if (name == name_of(policy)) return policy;
  }
  usage_error("--long '", name, "' is not one of split, truncate, drop");
}

double split_position(const std::string& text) {
  constexpr size_t kDigits = 13;  // 52 bits
  const std::string hash = digest(text);
  const std::string digits = hash.substr(hash.find(':') + 1, kDigits);
  return static_cast<double>(std::strtoull(digits.c_str(), nullptr, 16)) * 0x1p-52;
}

PrepareReport prepare_corpus(const CorpusOptions& o, const SentencePieceTokenizer& tokenizer) {
  check_options(o, o.source.files);
  if (o.pack && !o.eos) usage_error("--pack puts an EOS between documents; it cannot go with --no-eos");
  Json settings = settings_of(o, "corpus", o.source);
  settings["pack"] = o.pack;
  PrepareReport report;
  RecordReader reader(o.source);
  Outputs outputs(o, header_of(o, tokenizer, "documents", settings));
  std::vector<Rows> rows;
  for (size_t side = 0; side < outputs.sides(); ++side)
    rows.emplace_back(o, tokenizer.eos_id(), outputs.writer(side));
  Record record;
  const auto read = [&](EncodedRecord& next) {
    if (!reader.next(record)) return false;
    next.place = reader.place_of(record);
    next.texts = std::move(record.columns);
    next.bad = record.bad;
    return true;
  };
  const auto take = [&](const EncodedRecord& next) {
    return rows[outputs.side_of(next.texts[0])].add(next.encoded[0].ids, report);
  };
  for_each_encoded(o, tokenizer, {"text"}, reader, report, read, take);
  check_unknown(report.columns, o.allow_unknown);
  for (Rows& side : rows) side.finish();
  outputs.finish(report);
  return report;
}

PrepareReport prepare_pairs(const PairsOptions& o, const SentencePieceTokenizer& tokenizer) {
  std::vector<std::string> inputs = o.source.files;
  if (o.target) inputs.insert(inputs.end(), o.target->files.begin(), o.target->files.end());
  check_options(o, inputs);
  if (o.long_text == LongText::kSplit)
    usage_error("--long split is for documents; pairs can be truncated or dropped");
  if (o.max_input_length < 1 || o.max_input_length >= o.max_length) {
    usage_error("--max-input-length is ", o.max_input_length, ", expected 1 to --max-length (", o.max_length,
                ") - 1: the rest of a row is the target's");
  }
  Json settings = settings_of(o, "pairs", o.source);
  if (o.target) settings["target_files"] = o.target->files;
  settings["split_by"] = o.split_by_target ? "target" : "source";
  PrepareReport report;
  PairReader reader(o);
  DatasetInfo header = header_of(o, tokenizer, "pairs", settings);
  header.max_input_length = o.max_input_length;
  Outputs outputs(o, header);
  const auto take = [&](const EncodedRecord& pair) {
    Ids condition = pair.encoded[0].ids, target = pair.encoded[1].ids;
    if (o.eos) target.push_back(tokenizer.eos_id());
    const auto most_condition = static_cast<size_t>(o.max_input_length);
    const auto most_target = static_cast<size_t>(o.max_length - o.max_input_length);
    if (condition.size() > most_condition || target.size() > most_target) {
      if (o.long_text == LongText::kDrop) return false;
      ++report.truncated;
      condition.resize(std::min(condition.size(), most_condition));
      target.resize(std::min(target.size(), most_target));
    }
    DatasetWriter& writer = outputs.writer(outputs.side_of(pair.texts[o.split_by_target ? 1 : 0]));
    writer.add_pair(condition, target, pair.texts[0], pair.texts[1]);
    return true;
  };
  for_each_encoded(
      o, tokenizer, {"source", "target"}, reader.source(), report,
      [&](EncodedRecord& pair) { return reader.next(pair); }, take);
  report.replaced += reader.replaced_in_target();
  check_unknown(report.columns, o.allow_unknown);
  outputs.finish(report);
  return report;
}

}  // namespace elf
