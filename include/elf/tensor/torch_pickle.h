// Files of torch.save (.pt, .pth, .bin), read without running anything that is in them.
//
// A .pt file is a program for Python's unpickler. Here a small interpreter knows dictionaries, lists, tuples,
// numbers, texts and tensors; every other class or function that the file names becomes an opaque object,
// which holds its name only. Both the zip format (PyTorch 1.6 and later) and the older one are read.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elf/tensor/safetensors.h"

namespace elf {

// One object of the file. Objects may be shared, and may even contain themselves.
struct TorchObject {
  enum class Kind { kNone, kBool, kInteger, kReal, kText, kBytes, kSequence, kDict, kTensor, kOpaque };
  Kind kind = Kind::kNone;
  int64_t integer = 0;  // kBool (0 or 1), kInteger
  double real = 0;      // kReal
  std::string text;     // kText; kBytes; kOpaque: the Python name of what it would have been
  std::vector<const TorchObject*> items;                                   // kSequence: list, tuple, set
  std::vector<std::pair<const TorchObject*, const TorchObject*>> entries;  // kDict, in the order of the file
  at::Tensor tensor;  // kTensor: a view of its storage, strides as stored; tensors may share a storage

  bool is(Kind other) const { return kind == other; }
  // Of a kDict: the value under a text key, nullptr when there is none (or this is no dictionary).
  const TorchObject* find(std::string_view key) const;
};

// A file in memory. Immutable; may be read from several threads at once.
class TorchFile {
 public:
  // Dtypes: float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool; tensors of others are opaque.
  // Throws Error (usage) naming file, byte and rule: no such file, neither format, cut short, damaged (the
  // zip's CRC-32 of everything read is checked), an instruction that torch.save never writes, a tensor that
  // reaches beyond its storage. Nothing is allocated from unchecked lengths.
  static TorchFile read(const std::filesystem::path& path);

  const TorchObject& root() const { return *root_; }
  // Every class or function that was not understood, with the number of objects that became opaque by it.
  const std::map<std::string, int64_t>& skipped() const { return skipped_; }
  // "argparse.Namespace (1), os.system (2)"; "" when nothing was skipped.
  std::string skipped_text() const;
  const std::string& name() const { return name_; }

 private:
  std::shared_ptr<const void> keeper_;  // owns the objects
  const TorchObject* root_ = nullptr;
  std::map<std::string, int64_t> skipped_;
  std::string name_;
};

// The tensors of a dictionary by name. Entries that are None are left out. Throws Error (usage) naming
// `where` and the entry: a key that is no text, an entry that is no tensor (an opaque one by what it is).
TensorMap tensors_of(const TorchObject& dictionary, const std::string& where);

// Every tensor that dictionaries and lists lead to, by its path: "model.w", "optimizer.state.0.exp_avg".
TensorMap all_tensors(const TorchObject& root);

// The state dict of a file: its root, or what lies under "state_dict" or "model" there. What was skipped is
// logged. For weights of Hugging Face folders (pytorch_model.bin).
TensorMap read_torch_state_dict(const std::filesystem::path& path);

// A value to write: a tensor, a number, a text, or a dictionary of such.
struct TorchItem {
  std::string key;
  at::Tensor tensor = {};
  int64_t integer = 0;
  std::vector<TorchItem> entries = {};
  enum class Kind { kTensor, kInteger, kDict } kind = Kind::kTensor;

  static TorchItem of(std::string key, const at::Tensor& tensor);
  static TorchItem of(std::string key, int64_t value);
  static TorchItem of(std::string key, std::vector<TorchItem> entries);
  static TorchItem of(std::string key, const TensorMap& tensors);
};

// A dictionary of these entries as torch.load reads it (also with weights_only=True), by AtomicFile. Throws
// Error (environment; usage: a tensor of a dtype that such files are not written with here).
void write_torch_file(const std::filesystem::path& path, const std::vector<TorchItem>& entries);

}  // namespace elf
