#include "elf/data/dataset.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <variant>

#include "dataset_format.h"
#include "elf/base/error.h"
#include "hdf5.h"

namespace elf {
namespace fs = std::filesystem;
namespace {

using hdf5::Array;
using hdf5::Guard;

// The arrays of an open file.
struct OpenFile {
  explicit OpenFile(const fs::path& path, bool pairs)
      : file(hdf5::open_file(path)), tokens(file, format::kTokens, path.string()), owner(::getpid()) {
    if (!pairs) return;
    source.emplace_back(file, format::kSourceText, path.string());
    target.emplace_back(file, format::kTargetText, path.string());
  }
  hdf5::Handle file;
  Array tokens;
  std::vector<Array> source, target;  // none or one
  pid_t owner;                        // a handle must not be shared with a forked process
};

DatasetInfo read_info(const hdf5::Handle& file, const fs::path& path) {
  const std::string name = path.string();
  const auto integer = [&](const char* key) { return hdf5::read_integer(file, key, name); };
  if (!hdf5::has_attribute(file, "format") || hdf5::read_text(file, "format", name) != format::kName) {
    usage_error(name, ": an HDF5 file, but not a dataset of elf-prepare");
  }
  if (!hdf5::has_attribute(file, "complete") || integer("complete") != 1) {
    usage_error(
        name, ": the dataset is not complete (its writing was interrupted); make it again with elf-prepare");
  }
  if (const int64_t version = integer("format_version"); version != format::kVersion) {
    usage_error(name, ": dataset format ", version, ", this program reads ", format::kVersion,
                "; make it again with elf-prepare");
  }
  DatasetInfo info;
  info.path = path;
  info.kind = hdf5::read_text(file, "kind", name);
  if (info.kind != "documents" && info.kind != "pairs")
    usage_error(name, ": dataset of kind '", info.kind, "', expected documents or pairs");
  for (const auto& [key, field] : format::integer_fields()) info.*field = integer(key);
  for (const auto& [key, field] : format::text_fields()) info.*field = hdf5::read_text(file, key, name);
  return info;
}

std::vector<uint64_t> read_offsets(const hdf5::Handle& file, const char* name, const DatasetInfo& info,
                                   int64_t total) {
  const std::string path = info.path.string();
  const Array array(file, name, path);
  if (array.size() != info.rows + 1) {
    usage_error(path, ": ", info.rows, " rows by its attributes, ", array.size() - 1, " by '/", name,
                "'; the file is damaged");
  }
  std::vector<uint64_t> offsets(static_cast<size_t>(array.size()));
  array.read(0, array.size(), hdf5::uint64_type(), offsets.data());
  const bool good = offsets.front() == 0 && offsets.back() == static_cast<uint64_t>(total) &&
                    std::is_sorted(offsets.begin(), offsets.end());
  if (!good) usage_error(path, ": '/", name, "' does not lead from 0 to ", total, "; the file is damaged");
  return offsets;
}

}  // namespace

struct Dataset::Impl {
  DatasetInfo info;
  std::vector<uint64_t> offsets, source_offsets, target_offsets;
  std::vector<uint32_t> cond_lengths;
  std::variant<std::monostate, std::vector<uint16_t>, std::vector<uint32_t>>
      memory;                              // all tokens, when they fit
  mutable std::unique_ptr<OpenFile> open;  // guarded by hdf5::library_lock()

  // use(file), opened when first needed and again in a forked process.
  template <class Use>
  void with_file(Use use) const {
    const Guard guard(hdf5::library_lock());
    if (open && open->owner != ::getpid()) open.reset();
    if (!open) open = std::make_unique<OpenFile>(info.path, info.is_pairs());
    use(*open);
  }

  void check_row(int64_t row) const {
    if (row < 0 || row >= info.rows) usage_error(info.path.string(), ": row ", row, " of ", info.rows);
  }

  // The first token of tokens[first ...] that the vocabulary lacks is an error.
  template <class Id>
  void check_ids(const std::vector<Id>& ids, int64_t first) const {
    const auto bad = std::find_if(ids.begin(), ids.end(),
                                  [&](Id id) { return static_cast<int64_t>(id) >= info.vocab_size; });
    if (bad == ids.end()) return;
    usage_error(info.path.string(), ": token ", first + (bad - ids.begin()), " is ", *bad,
                ", the vocabulary has ", info.vocab_size, "; the file is damaged");
  }

  template <class Id>
  void load_tokens(hid_t type) {
    std::vector<Id> ids(static_cast<size_t>(info.tokens));
    with_file([&](const OpenFile& file) { file.tokens.read(0, info.tokens, type, ids.data()); });
    check_ids(ids, 0);
    memory = std::move(ids);
  }

  void load_rows(const OpenFile& file) {
    const std::string path = info.path.string();
    if (file.tokens.size() != info.tokens) {
      usage_error(path, ": ", info.tokens, " tokens by its attributes, ", file.tokens.size(),
                  " in '/tokens'; the file is damaged");
    }
    offsets = read_offsets(file.file, format::kOffsets, info, info.tokens);
    for (int64_t row = 0; row < info.rows; ++row) {
      const uint64_t length = offsets[row + 1] - offsets[row];
      if (length == 0 || length > static_cast<uint64_t>(info.max_length)) {
        usage_error(path, ": row ", row, " has ", length, " tokens, expected 1 to ", info.max_length,
                    "; the file is damaged");
      }
    }
    if (!info.is_pairs()) return;
    const Array lengths(file.file, format::kCondLengths, path);
    if (lengths.size() != info.rows)
      usage_error(path, ": ", info.rows, " rows, but ", lengths.size(),
                  " condition lengths; the file is damaged");
    cond_lengths.resize(static_cast<size_t>(info.rows));
    lengths.read(0, info.rows, hdf5::uint32_type(), cond_lengths.data());
    for (int64_t row = 0; row < info.rows; ++row) {
      if (cond_lengths[row] > offsets[row + 1] - offsets[row])
        usage_error(path, ": row ", row, ": its condition is longer than the row");
    }
    source_offsets = read_offsets(file.file, format::kSourceTextOffsets, info, file.source.at(0).size());
    target_offsets = read_offsets(file.file, format::kTargetTextOffsets, info, file.target.at(0).size());
  }

  std::string text(int64_t row, const std::vector<uint64_t>& text_offsets,
                   std::vector<Array> OpenFile::*column) const {
    check_row(row);
    if (!info.is_pairs()) return "";
    std::string result(text_offsets[row + 1] - text_offsets[row], '\0');
    with_file([&](const OpenFile& file) {
      (file.*column)[0].read(static_cast<int64_t>(text_offsets[row]), static_cast<int64_t>(result.size()),
                             hdf5::uint8_type(), result.data());
    });
    return result;
  }
};

Dataset::Dataset(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Dataset Dataset::open(const fs::path& path, int64_t memory_limit) {
  auto impl = std::make_shared<Impl>();
  int64_t token_bytes = 0;
  impl->info = read_info(hdf5::open_file(path), path);
  impl->with_file([&](const OpenFile& file) {
    impl->load_rows(file);
    token_bytes = file.tokens.element_bytes();
  });
  if (impl->info.tokens * token_bytes > memory_limit) return Dataset(std::move(impl));
  if (token_bytes == 2) {
    impl->load_tokens<uint16_t>(hdf5::uint16_type());
  } else {
    impl->load_tokens<uint32_t>(hdf5::uint32_type());
  }
  const Guard guard(hdf5::library_lock());
  impl->open.reset();  // texts are seldom asked for: nothing stays open
  return Dataset(std::move(impl));
}

const DatasetInfo& Dataset::info() const {
  return impl_->info;
}

void Dataset::require_tokenizer(const std::string& hash, int64_t vocab_size) const {
  const DatasetInfo& d = info();
  if (d.tokenizer_hash == hash && d.vocab_size == vocab_size) return;
  usage_error(d.path.string(), ": made with the tokenizer ", d.tokenizer_hash, " (", d.vocab_size,
              " ids), but the one given is ", hash, " (", vocab_size,
              " ids); give the same tokenizer, or prepare the data with this one");
}

int64_t Dataset::length(int64_t row) const {
  impl_->check_row(row);
  return static_cast<int64_t>(impl_->offsets[row + 1] - impl_->offsets[row]);
}

std::vector<int32_t> Dataset::tokens(int64_t row) const {
  const int64_t count = length(row), first = static_cast<int64_t>(impl_->offsets[row]);
  const auto copy = [&](const auto& all) {
    return std::vector<int32_t>(all.begin() + first, all.begin() + first + count);
  };
  if (const auto* narrow = std::get_if<std::vector<uint16_t>>(&impl_->memory)) return copy(*narrow);
  if (const auto* wide = std::get_if<std::vector<uint32_t>>(&impl_->memory)) return copy(*wide);
  std::vector<uint32_t> ids(static_cast<size_t>(count));
  impl_->with_file(
      [&](const OpenFile& file) { file.tokens.read(first, count, hdf5::uint32_type(), ids.data()); });
  impl_->check_ids(ids, first);
  return {ids.begin(), ids.end()};
}

int64_t Dataset::cond_length(int64_t row) const {
  impl_->check_row(row);
  return info().is_pairs() ? impl_->cond_lengths[row] : 0;
}

std::string Dataset::source_text(int64_t row) const {
  return impl_->text(row, impl_->source_offsets, &OpenFile::source);
}
std::string Dataset::target_text(int64_t row) const {
  return impl_->text(row, impl_->target_offsets, &OpenFile::target);
}

}  // namespace elf
