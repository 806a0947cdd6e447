// Writing files of torch.save: pickle protocol 2 with the very calls that Python writes.
#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>

#include <cstring>
#include <fstream>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/tensor/torch_pickle.h"

namespace elf {
namespace {

// The storage class of a dtype.
const char* storage_class(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return "DoubleStorage";
    case at::kFloat:
      return "FloatStorage";
    case at::kHalf:
      return "HalfStorage";
    case at::kBFloat16:
      return "BFloat16Storage";
    case at::kLong:
      return "LongStorage";
    case at::kInt:
      return "IntStorage";
    case at::kShort:
      return "ShortStorage";
    case at::kChar:
      return "CharStorage";
    case at::kByte:
      return "ByteStorage";
    case at::kBool:
      return "BoolStorage";
    default:
      usage_error("torch file: tensors of dtype ", at::toString(type), " cannot be stored");
  }
}

class Pickler {
 public:
  std::string pickle(const std::vector<TorchItem>& entries) {
    out_ = "\x80\x02";
    dictionary(entries);
    out_ += '.';
    return std::move(out_);
  }
  const std::vector<at::Tensor>& storages() const { return storages_; }

 private:
  template <class T>
  void raw(T value) {  // little endian, as this machine
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& value) {
    out_ += 'X';
    raw(static_cast<uint32_t>(value.size()));
    out_ += value;
  }
  void integer(int64_t value) {
    if (value >= INT32_MIN && value <= INT32_MAX) {
      out_ += 'J';
      raw(static_cast<int32_t>(value));
    } else {
      out_ += "\x8a\x08";
      raw(value);
    }
  }
  void global(const std::string& module, const std::string& name) {
    out_ += "c" + module + "\n" + name + "\n";
  }
  void integers(at::IntArrayRef values) {
    out_ += '(';
    for (const int64_t value : values) integer(value);
    out_ += 't';
  }

  void dictionary(const std::vector<TorchItem>& entries) {
    out_ += "}(";
    for (const TorchItem& item : entries) {
      text(item.key);
      if (item.kind == TorchItem::Kind::kTensor) tensor(item.tensor);
      if (item.kind == TorchItem::Kind::kInteger) integer(item.integer);
      if (item.kind == TorchItem::Kind::kDict) dictionary(item.entries);
    }
    out_ += 'u';
  }

  // torch._utils._rebuild_tensor_v2(storage, 0, sizes, strides, False, OrderedDict())
  void tensor(const at::Tensor& given) {
    storages_.push_back(given.detach().to(at::kCPU).contiguous());
    const at::Tensor& stored = storages_.back();
    global("torch._utils", "_rebuild_tensor_v2");
    out_ += "((";
    text("storage");
    global("torch", storage_class(stored.scalar_type()));
    text(std::to_string(storages_.size() - 1));
    text("cpu");
    integer(stored.numel());
    out_ += "tQ";
    integer(0);
    integers(stored.sizes());
    integers(stored.strides());
    out_ += '\x89';
    global("collections", "OrderedDict");
    out_ += ")RtR";
  }

  std::string out_;
  std::vector<at::Tensor> storages_;
};

}  // namespace

TorchItem TorchItem::of(std::string key, const at::Tensor& tensor) {
  return {.key = std::move(key), .tensor = tensor, .kind = Kind::kTensor};
}
TorchItem TorchItem::of(std::string key, int64_t value) {
  return {.key = std::move(key), .integer = value, .kind = Kind::kInteger};
}
TorchItem TorchItem::of(std::string key, std::vector<TorchItem> entries) {
  return {.key = std::move(key), .entries = std::move(entries), .kind = Kind::kDict};
}
TorchItem TorchItem::of(std::string key, const TensorMap& tensors) {
  std::vector<TorchItem> entries;
  for (const auto& [name, tensor] : tensors) entries.push_back(of(name, tensor));
  return of(std::move(key), std::move(entries));
}

void write_torch_file(const std::filesystem::path& path, const std::vector<TorchItem>& entries) {
  Pickler pickler;
  const std::string pickle = pickler.pickle(entries);
  AtomicFile target(path);
  std::ofstream out(target.temporary(), std::ios::binary);
  if (!out) path_error(path, "cannot be written", {errno, std::generic_category()});
  caffe2::serialize::PyTorchStreamWriter zip([&](const void* bytes, size_t count) {
    if (out) out.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
    return count;  // a failure is told below: the writer would throw, and again while it is destroyed
  });
  zip.writeRecord("data.pkl", pickle.data(), pickle.size());
  zip.writeRecord("byteorder", "little", 6);
  for (size_t i = 0; i < pickler.storages().size(); ++i) {
    const at::Tensor& stored = pickler.storages()[i];
    zip.writeRecord(cat("data/", i), stored.data_ptr(), stored.nbytes());
  }
  zip.writeEndOfFile();
  out.close();
  if (!out) environment_error(path.string(), ": writing failed: ", std::strerror(errno));
  target.commit();
}

}  // namespace elf
