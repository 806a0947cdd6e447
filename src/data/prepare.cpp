#include "elf/data/prepare.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "elf/base/progress.h"
#include "elf/text/unicode.h"
#include "elf/version.h"
#include "in_order.h"
#include "prepare_outputs.h"
#include "text_encoding.h"

namespace elf {
namespace {

using Json = nlohmann::ordered_json;
using Ids = std::vector<int32_t>;

constexpr size_t kBatchRecords = 1024;
constexpr size_t kBatchBytes = size_t{1} << 20;

Json settings_of(const PrepareOptions& o, const char* tool, const RecordSource& source) {
  Json files = source.files;
  if (files.size() > kListedDrops) files.erase(files.begin() + kListedDrops, files.end());
  return {{"tool", cat("elf-prepare ", tool, " ", ELF_VERSION)},
          {"files", files},
          {"long", name_of(o.long_text)},
          {"eos", o.eos},
          {"valid_fraction", o.valid_fraction},
          {"max_records", o.max_records},
          {"shuffle_seed", o.shuffle_seed ? Json(*o.shuffle_seed) : Json(nullptr)},
          {"append", o.append}};
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
// fit(record) cuts what has text in every column, encoded, to what goes into a dataset, or to nothing when it
// is too long. Counts the rest.
template <class Read, class Fit>
class Preparation {
 public:
  Preparation(const PrepareOptions& o, const SentencePieceTokenizer& tokenizer,
              const std::vector<std::string>& names, PrepareOutputs& outputs, PrepareReport& report)
      : o_(o), tokenizer_(tokenizer), outputs_(outputs), report_(report), drops_(o.drop_report) {
    for (const std::string& name : names) columns_.emplace_back(name, tokenizer);
  }

  void run(const RecordReader& reader, Read read, Fit fit) {
    Progress progress("prepare", reader.bytes_total() >> 10, "KiB");
    const auto start = std::chrono::steady_clock::now();
    struct Batch {
      std::vector<EncodedRecord> records;
      int64_t bytes_read = 0;
    };
    int64_t count = 0;
    bool more = true;
    const auto read_batch = [&](Batch& batch) {
      for (size_t bytes = 0; more && batch.records.size() < kBatchRecords && bytes < kBatchBytes;) {
        EncodedRecord record;
        more = (o_.max_records == 0 || count < o_.max_records) && read(record);
        if (!more) break;
        ++count;
        for (const std::string& text : record.texts) bytes += text.size();
        batch.records.push_back(std::move(record));
      }
      batch.bytes_read = reader.bytes_read();
      return !batch.records.empty();
    };
    const auto encode_batch = [&](Batch& batch) {
      for (EncodedRecord& record : batch.records) encode_record(record, tokenizer_);
    };
    const auto use_batch = [&](Batch& batch) {
      for (EncodedRecord& record : batch.records) use(record, fit);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      progress.update(
          batch.bytes_read >> 10,
          cat(report_.records, " records, ",
              static_cast<int64_t>(static_cast<double>(report_.records) / std::max(seconds, 1e-3)), "/s"));
    };
    const int threads = o_.threads > 0 ? o_.threads : static_cast<int>(std::thread::hardware_concurrency());
    in_order<Batch>(std::max(1, threads), read_batch, encode_batch, use_batch);
    progress.finish(cat(report_.records, " records"));
    report_.replaced = reader.replaced();
    for (const ColumnCounter& column : columns_) report_.columns.push_back(column.report());
    check_unknown(report_.columns, o_.allow_unknown);
  }

  void finish() {
    outputs_.finish(report_);
    drops_.finish();
  }

 private:
  void drop(const EncodedRecord& record, int64_t& counter, const char* reason) {
    ++counter;
    drops_.add(record.place, reason);
    if (report_.dropped.size() < kListedDrops) report_.dropped.emplace_back(record.place, reason);
  }

  void use(EncodedRecord& record, Fit& fit) {
    ++report_.records;
    if (record.bad) return drop(record, report_.bad_text, "invalid UTF-8 or NUL");
    bool blank = false, line_breaks = false;
    for (size_t c = 0; c < columns_.size(); ++c) {
      blank |= record.encoded[c].ids.empty() || is_blank(record.texts[c]);
      line_breaks |= record.encoded[c].line_breaks;
    }
    if (blank) return drop(record, report_.blank, columns_.size() > 1 ? "an empty side" : "blank");
    report_.line_breaks += line_breaks;
    for (size_t c = 0; c < columns_.size(); ++c) columns_[c].add(record.encoded[c]);
    std::optional<FittedRecord> fitted = fit(record);
    if (!fitted) return drop(record, report_.too_long, "too long");
    ++report_.kept;
    outputs_.add(std::move(*fitted));
  }

  const PrepareOptions& o_;
  const SentencePieceTokenizer& tokenizer_;
  PrepareOutputs& outputs_;
  PrepareReport& report_;
  DropReport drops_;
  std::vector<ColumnCounter> columns_;
};

// A document's ids as they fill rows; false: dropped as too long.
bool fit_document(const CorpusOptions& o, int32_t eos, Ids& ids, PrepareReport& report) {
  if (o.eos) ids.push_back(eos);
  const auto length = static_cast<size_t>(o.max_length);
  if (o.pack || ids.size() <= length) return true;
  if (o.long_text == LongText::kDrop) return false;
  if (ids.size() > length + (o.eos ? 1 : 0))
    ++(o.long_text == LongText::kSplit ? report.split : report.truncated);
  if (o.long_text == LongText::kTruncate) ids.resize(length);
  if (ids.size() % length == 1 && ids.back() == eos) ids.pop_back();  // no row of an EOS alone
  return true;
}

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
  PrepareOutputs outputs(o, header_of(o, tokenizer, "documents", settings), o.pack);
  Record record;
  const auto read = [&](EncodedRecord& next) {
    if (!reader.next(record)) return false;
    next.place = reader.place_of(record);
    next.texts = std::move(record.columns);
    next.bad = record.bad;
    return true;
  };
  const auto fit = [&](EncodedRecord& document) -> std::optional<FittedRecord> {
    FittedRecord fitted{outputs.side_of(document.texts[0]), {}, std::move(document.encoded[0].ids), "", ""};
    if (!fit_document(o, tokenizer.eos_id(), fitted.ids, report)) return std::nullopt;
    return fitted;
  };
  Preparation<decltype(read), decltype(fit)> preparation(o, tokenizer, {"text"}, outputs, report);
  preparation.run(reader, read, fit);
  preparation.finish();
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
  PrepareOutputs outputs(o, header, /*pack=*/false);
  const auto read = [&](EncodedRecord& pair) { return reader.next(pair); };
  const auto fit = [&](EncodedRecord& pair) -> std::optional<FittedRecord> {
    Ids &condition = pair.encoded[0].ids, &target = pair.encoded[1].ids;
    if (o.eos) target.push_back(tokenizer.eos_id());
    const auto most_condition = static_cast<size_t>(o.max_input_length);
    const auto most_target = static_cast<size_t>(o.max_length - o.max_input_length);
    if (condition.size() > most_condition || target.size() > most_target) {
      if (o.long_text == LongText::kDrop) return std::nullopt;
      ++report.truncated;
      condition.resize(std::min(condition.size(), most_condition));
      target.resize(std::min(target.size(), most_target));
    }
    const size_t side = outputs.side_of(pair.texts[o.split_by_target ? 1 : 0]);
    return FittedRecord{side, std::move(condition), std::move(target), std::move(pair.texts[0]),
                        std::move(pair.texts[1])};
  };
  Preparation<decltype(read), decltype(fit)> preparation(o, tokenizer, {"source", "target"}, outputs, report);
  preparation.run(reader.source(), read, fit);
  report.replaced += reader.replaced_in_target();
  preparation.finish();
  return report;
}

}  // namespace elf
