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

constexpr int kConditionBits = 24;            // of an entry of the index; the others are the offset
constexpr int64_t kBlock = int64_t{1} << 16;  // elements read at a time where not all are kept

// The texts of one side of pairs.
struct TextArrays {
  Array bytes, offsets;
};

// The arrays of an open file.
struct OpenFile {
  explicit OpenFile(const fs::path& path, bool pairs)
      : file(hdf5::open_file(path)), tokens(file, format::kTokens, path.string()), owner(::getpid()) {
    if (!pairs) return;
    const auto text = [&](const char* bytes, const char* offsets) {
      return TextArrays{{file, bytes, path.string()}, {file, offsets, path.string()}};
    };
    source.push_back(text(format::kSourceText, format::kSourceTextOffsets));
    target.push_back(text(format::kTargetText, format::kTargetTextOffsets));
  }
  hdf5::Handle file;
  Array tokens;
  std::vector<TextArrays> source, target;  // none or one
  pid_t owner;                             // a handle must not be shared with a forked process
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

// Calls use(row, offset) for each of the rows + 1 offsets in `array`, which must lead from 0 to `total`.
template <class Use>
void for_each_offset(const Array& array, const char* name, const DatasetInfo& info, int64_t total, Use use) {
  const std::string path = info.path.string();
  if (array.size() - 1 != info.rows || info.rows < 0) {
    usage_error(path, ": ", info.rows, " rows by its attributes, ", array.size() - 1, " by '/", name,
                "'; the file is damaged");
  }
  std::vector<uint64_t> block;
  uint64_t before = 0;
  bool good = true;
  for (int64_t first = 0; first < array.size() && good; first += kBlock) {
    block.resize(static_cast<size_t>(std::min(kBlock, array.size() - first)));
    array.read(first, static_cast<int64_t>(block.size()), hdf5::uint64_type(), block.data());
    good = (first > 0 || block.front() == 0) && block.front() >= before &&
           std::is_sorted(block.begin(), block.end()) && block.back() <= static_cast<uint64_t>(total);
    for (size_t i = 0; good && i < block.size(); ++i) use(first + static_cast<int64_t>(i), block[i]);
    before = block.back();
  }
  if (!good || before != static_cast<uint64_t>(total))
    usage_error(path, ": '/", name, "' does not lead from 0 to ", total, "; the file is damaged");
}

}  // namespace

struct Dataset::Impl {
  DatasetInfo info;
  // [rows + 1], all that is kept of a row: its first token << kConditionBits | length of its condition.
  std::vector<uint64_t> index;
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

  int64_t offset(int64_t row) const { return static_cast<int64_t>(index[row] >> kConditionBits); }
  int64_t condition(int64_t row) const {
    return static_cast<int64_t>(index[row] & ((uint64_t{1} << kConditionBits) - 1));
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
    if (info.tokens >> (64 - kConditionBits) != 0 || info.max_length >> kConditionBits != 0)
      usage_error(path, ": ", info.tokens, " tokens in rows of up to ", info.max_length, " are too many");
    const Array offsets(file.file, format::kOffsets, path);
    index.reserve(static_cast<size_t>(offsets.size()));
    for_each_offset(offsets, format::kOffsets, info, info.tokens,
                    [&](int64_t, uint64_t offset) { index.push_back(offset << kConditionBits); });
    for (int64_t row = 0; row < info.rows; ++row) {
      const int64_t length = offset(row + 1) - offset(row);
      if (length == 0 || length > info.max_length) {
        usage_error(path, ": row ", row, " has ", length, " tokens, expected 1 to ", info.max_length,
                    "; the file is damaged");
      }
    }
    if (!info.is_pairs()) return;
    load_conditions(Array(file.file, format::kCondLengths, path));
    const auto nothing = [](int64_t, uint64_t) {};
    const TextArrays &source = file.source[0], &target = file.target[0];
    for_each_offset(source.offsets, format::kSourceTextOffsets, info, source.bytes.size(), nothing);
    for_each_offset(target.offsets, format::kTargetTextOffsets, info, target.bytes.size(), nothing);
  }

  void load_conditions(const Array& lengths) {
    const std::string path = info.path.string();
    if (lengths.size() != info.rows)
      usage_error(path, ": ", info.rows, " rows, but ", lengths.size(),
                  " condition lengths; the file is damaged");
    std::vector<uint32_t> block;
    for (int64_t first = 0; first < info.rows; first += kBlock) {
      block.resize(static_cast<size_t>(std::min(kBlock, info.rows - first)));
      lengths.read(first, static_cast<int64_t>(block.size()), hdf5::uint32_type(), block.data());
      for (size_t i = 0; i < block.size(); ++i) {
        const int64_t row = first + static_cast<int64_t>(i);
        if (block[i] > offset(row + 1) - offset(row))
          usage_error(path, ": row ", row, ": its condition is longer than the row");
        index[row] |= block[i];
      }
    }
  }

  std::string text(int64_t row, std::vector<TextArrays> OpenFile::*column) const {
    check_row(row);
    if (!info.is_pairs()) return "";
    std::string result;
    with_file([&](const OpenFile& file) {
      const TextArrays& arrays = (file.*column)[0];
      uint64_t ends[2];
      arrays.offsets.read(row, 2, hdf5::uint64_type(), ends);
      result.resize(ends[1] - ends[0]);
      arrays.bytes.read(static_cast<int64_t>(ends[0]), static_cast<int64_t>(result.size()),
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
  return impl_->offset(row + 1) - impl_->offset(row);
}

std::vector<int32_t> Dataset::tokens(int64_t row) const {
  const int64_t count = length(row), first = impl_->offset(row);
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
  return impl_->condition(row);
}

std::string Dataset::source_text(int64_t row) const {
  return impl_->text(row, &OpenFile::source);
}
std::string Dataset::target_text(int64_t row) const {
  return impl_->text(row, &OpenFile::target);
}

}  // namespace elf
