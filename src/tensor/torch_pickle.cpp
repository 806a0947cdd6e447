#include "elf/tensor/torch_pickle.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <unordered_map>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "pickle.h"
#include "zip_archive.h"

namespace elf {
namespace fs = std::filesystem;
namespace {

using Kind = TorchObject::Kind;

// What the older format begins with: a pickle of one number.
constexpr std::string_view kLegacyMagic = "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.";
constexpr int64_t kLegacyProtocol = 1001;

// The bytes of a storage as a flat tensor of bytes.
using Storages = std::vector<at::Tensor>;

uint64_t bytes_of(const PickledStorage& storage) {
  return static_cast<uint64_t>(storage.elements) * c10::elementSize(storage.dtype);
}

at::Tensor empty_bytes(uint64_t count) {
  return at::empty({static_cast<int64_t>(count)}, at::TensorOptions().dtype(at::kByte));
}

// The largest index of an element, plus one; 0 for a tensor without elements. Saturates.
int64_t extent(const PickledTensor& tensor) {
  __int128 last = tensor.offset;
  for (size_t i = 0; i < tensor.sizes.size(); ++i) {
    if (tensor.sizes[i] == 0) return 0;
    last += static_cast<__int128>(tensor.sizes[i] - 1) * tensor.strides[i];
  }
  const __int128 most = std::numeric_limits<int64_t>::max() - 1;
  return static_cast<int64_t>(std::min(last, most)) + 1;
}

// Elements as the sizes say, not more than `limit` + 1. (Strides of 0 can make a huge tensor of one number.)
int64_t bounded_elements(const PickledTensor& tensor, int64_t limit) {
  if (std::find(tensor.sizes.begin(), tensor.sizes.end(), 0) != tensor.sizes.end()) return 0;
  int64_t count = 1;
  for (const int64_t size : tensor.sizes) {
    if (size > limit / count) return limit + 1;
    count *= size;
  }
  return count;
}

// Gives each tensor of `pickled` its view of the storages.
void make_tensors(const Unpickled& pickled, const Storages& storages, uint64_t file_size,
                  const std::string& file) {
  for (const PickledTensor& each : pickled.tensors) {
    const PickledStorage& storage = pickled.storages[each.storage];
    const auto width = static_cast<int64_t>(c10::elementSize(each.dtype));
    const int64_t available = static_cast<int64_t>(bytes_of(storage)) / width;
    const std::string where = cat(file, ": a tensor on storage '", storage.key, "'");
    if (extent(each) > available) {
      usage_error(where, " of ", available, " elements reaches to element ", extent(each),
                  "; the file is damaged");
    }
    if (bounded_elements(each, static_cast<int64_t>(file_size)) * width > static_cast<int64_t>(file_size))
      usage_error(where, " is larger than the file: it repeats its elements; save a copy of it");
    try {
      const at::Tensor bytes = storages[each.storage].narrow(0, 0, available * width);
      each.object->tensor = bytes.view(each.dtype).as_strided(each.sizes, each.strides, each.offset);
    } catch (const c10::Error& error) {  // sizes that overflow
      usage_error(where, " cannot be: ", error.what_without_backtrace());
    }
  }
}

Storages zip_storages(const ZipArchive& zip, const std::string& root, const Unpickled& pickled,
                      const std::string& file) {
  Storages storages;
  for (const PickledStorage& storage : pickled.storages) {
    const std::string member = root + "data/" + storage.key;
    const std::optional<uint64_t> bytes = zip.size(member);
    if (!bytes) usage_error(file, ": has no member '", member, "', which a tensor lies in");
    if (*bytes != bytes_of(storage)) {
      usage_error(file, ": member '", member, "' has ", *bytes, " bytes, its tensors expect ",
                  bytes_of(storage));
    }
    storages.push_back(empty_bytes(*bytes));
    if (*bytes > 0) zip.read(member, storages.back().data_ptr(), *bytes);
  }
  return storages;
}

Unpickled read_zip(const fs::path& path, const std::string& file) {
  const ZipArchive zip(path);
  std::vector<std::string> pickles;
  bool script = false;
  for (const std::string& name : zip.names()) {
    if (name == "data.pkl" || name.ends_with("/data.pkl")) pickles.push_back(name);
    script = script || name.ends_with("/constants.pkl");
  }
  if (script) usage_error(file, ": is a TorchScript program, expected a checkpoint of torch.save");
  if (pickles.size() != 1) {
    usage_error(file, ": a zip archive with ", pickles.size(),
                " members data.pkl, expected one: no checkpoint of torch.save");
  }
  const std::string root = pickles[0].substr(0, pickles[0].size() - std::strlen("data.pkl"));
  if (zip.size(root + "byteorder") && zip.text(root + "byteorder") != "little")
    usage_error(file, ": was written on a big-endian machine; save it again on a little-endian one");
  Unpickled pickled = unpickle(zip.text(pickles[0]), file + ": " + pickles[0]);
  make_tensors(pickled, zip_storages(zip, root, pickled, file), fs::file_size(path), file);
  return pickled;
}

// The older format: pickles of a magic number, a protocol number, facts of the machine, the object, and the
// keys of the storages; then each storage as its number of elements (int64) and its bytes.
class LegacyReader {
 public:
  LegacyReader(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  Unpickled read() {
    at_ = kLegacyMagic.size();
    const Unpickled protocol = next();
    if (!protocol.root->is(Kind::kInteger) || protocol.root->integer != kLegacyProtocol)
      usage_error(file_, ": the older format of torch.save, but not its protocol ", kLegacyProtocol);
    const Unpickled machine = next();
    const TorchObject* little = machine.root->find("little_endian");
    if (little && little->integer == 0)
      usage_error(file_, ": was written on a big-endian machine; save it again on a little-endian one");
    Unpickled pickled = next();
    const Unpickled keys = next();
    const Storages storages = storages_of(pickled, *keys.root);
    make_tensors(pickled, storages, bytes_.size(), file_);
    return pickled;
  }

 private:
  Unpickled next() {
    Unpickled made = unpickle(bytes_.substr(at_), cat(file_, ": pickle at byte ", at_));
    at_ += made.end;
    return made;
  }

  Storages storages_of(const Unpickled& pickled, const TorchObject& keys) {
    std::unordered_map<std::string, size_t> index;
    for (size_t i = 0; i < pickled.storages.size(); ++i) index[pickled.storages[i].key] = i;
    Storages storages(pickled.storages.size());
    for (const TorchObject* key : keys.items) {
      const auto found = key->is(Kind::kText) ? index.find(key->text) : index.end();
      if (found == index.end()) usage_error(file_, ": a storage that no tensor names; the file is damaged");
      storages[found->second] = storage(pickled.storages[found->second]);
    }
    for (size_t i = 0; i < storages.size(); ++i) {
      if (!storages[i].defined())
        usage_error(file_, ": storage '", pickled.storages[i].key, "' is missing; the file is cut short");
    }
    return storages;
  }

  at::Tensor storage(const PickledStorage& about) {
    const uint64_t left = bytes_.size() - at_, bytes = bytes_of(about);
    int64_t elements = 0;
    if (left >= 8) std::memcpy(&elements, bytes_.data() + at_, 8);
    if (left < 8 || elements != about.elements || bytes > left - 8) {
      usage_error(file_, ": storage '", about.key, "' needs ", bytes, " bytes, ", left,
                  " are left; the file is cut short or damaged");
    }
    at::Tensor made = empty_bytes(bytes);
    if (bytes > 0) std::memcpy(made.data_ptr(), bytes_.data() + at_ + 8, bytes);
    at_ += 8 + bytes;
    return made;
  }

  std::string_view bytes_;
  const std::string& file_;
  size_t at_ = 0;
};

Unpickled read_any(const fs::path& path) {
  const std::string file = path.string();
  std::error_code error;
  if (!fs::exists(path, error)) usage_error(file, ": no such file");
  if (!fs::is_regular_file(path, error)) usage_error(file, ": is no file");
  std::ifstream in(path, std::ios::binary);
  if (!in) environment_error(file, ": cannot be read: ", std::strerror(errno));
  std::string first(256, '\0');
  in.read(first.data(), static_cast<std::streamsize>(first.size()));
  first.resize(static_cast<size_t>(in.gcount()));
  in.close();
  if (const std::string kind = what_bytes_look_like(first); !kind.empty()) usage_error(file, ": is ", kind);
  if (first.starts_with("PK\x03\x04")) return read_zip(path, file);
  if (first.starts_with(kLegacyMagic)) {
    const std::string bytes = read_file(path);
    return LegacyReader(bytes, file).read();
  }
  if (first.starts_with("\x80"))
    usage_error(file, ": a bare pickle, expected a file of torch.save; save the tensors with torch.save");
  usage_error(file, ": no file of torch.save (neither its zip format nor the older one)");
}

const TorchObject& state_dict_of(const TorchObject& root) {
  for (const char* key : {"state_dict", "model"}) {
    const TorchObject* inner = root.find(key);
    if (inner && inner->is(Kind::kDict)) return *inner;
  }
  return root;
}

// Objects may be shared and contain themselves: depth, number of steps and length of the names are bounded.
class TensorWalk {
 public:
  void visit(const TorchObject& object, const std::string& path, int depth) {
    if (depth > kDeepest || ++steps_ > kMostSteps || (letters_ += path.size()) > kMostLetters) return;
    if (object.is(Kind::kTensor)) found.emplace(path, object.tensor);
    const std::string prefix = path.empty() ? "" : path + ".";
    for (size_t i = 0; i < object.items.size(); ++i) visit(*object.items[i], cat(prefix, i), depth + 1);
    for (const auto& [key, value] : object.entries) {
      if (key->is(Kind::kText)) visit(*value, prefix + key->text, depth + 1);
      if (key->is(Kind::kInteger)) visit(*value, cat(prefix, key->integer), depth + 1);
    }
  }
  TensorMap found;

 private:
  static constexpr int kDeepest = 32, kMostSteps = 1'000'000;
  static constexpr size_t kMostLetters = size_t{64} << 20;
  int steps_ = 0;
  size_t letters_ = 0;
};

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return "a boolean";
    case Kind::kInteger:
      return "an integer";
    case Kind::kReal:
      return "a number";
    case Kind::kText:
      return "a text";
    case Kind::kBytes:
      return "bytes";
    case Kind::kSequence:
      return "a list";
    case Kind::kDict:
      return "a dictionary";
    case Kind::kTensor:
      return "a tensor";
    case Kind::kOpaque:
      break;
  }
  return "an object";
}

std::string what_it_is(const TorchObject& object) {
  if (!object.is(Kind::kOpaque)) return kind_name(object.kind);
  return cat("made by '", object.text, "', which is not run");
}

}  // namespace

const TorchObject* TorchObject::find(std::string_view key) const {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {  // set twice: the last one counts
    if (entry->first->is(Kind::kText) && entry->first->text == key) return entry->second;
  }
  return nullptr;
}

TorchFile TorchFile::read(const fs::path& path) {
  auto pickled = std::make_shared<const Unpickled>(read_any(path));
  TorchFile file;
  file.root_ = pickled->root;
  file.skipped_ = pickled->skipped;
  file.keeper_ = std::move(pickled);
  file.name_ = path.string();
  return file;
}

std::string TorchFile::skipped_text() const {
  std::string text;
  for (const auto& [name, count] : skipped_) text += cat(text.empty() ? "" : ", ", name, " (", count, ")");
  return text;
}

TensorMap tensors_of(const TorchObject& dictionary, const std::string& where) {
  if (!dictionary.is(Kind::kDict))
    usage_error(where, ": expected a dictionary of tensors, found what is ", what_it_is(dictionary),
                "; save the state_dict() of a module, not the module");
  TensorMap tensors;
  for (const auto& [key, value] : dictionary.entries) {
    if (!key->is(Kind::kText)) usage_error(where, ": a key that is ", what_it_is(*key), ", expected a name");
    if (value->is(Kind::kNone)) continue;
    if (!value->is(Kind::kTensor))
      usage_error(where, ": '", key->text, "' is ", what_it_is(*value), ", expected a tensor");
    tensors[key->text] = value->tensor;
  }
  return tensors;
}

TensorMap all_tensors(const TorchObject& root) {
  TensorWalk walk;
  walk.visit(root, "", 0);
  return walk.found;
}

TensorMap read_torch_state_dict(const fs::path& path) {
  const TorchFile file = TorchFile::read(path);
  if (!file.skipped().empty()) log_info(cat(file.name(), ": left out: ", file.skipped_text()));
  return tensors_of(state_dict_of(file.root()), file.name());
}

}  // namespace elf
