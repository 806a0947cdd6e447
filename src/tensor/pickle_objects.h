// What the names in a pickle mean: which classes become dictionaries, lists and tensors, and that all others
// become opaque.
#pragma once

#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "pickle.h"

namespace elf {

// What is wrong with the pickle; unpickle() adds file and byte.
struct PickleFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class PickleObjects {
 public:
  TorchObject* make(TorchObject::Kind kind);

  // A class or function by name. It stays a name, an opaque object; nothing is imported.
  TorchObject* global(const std::string& name);

  // What calling `callee` would have given. Nothing is called: a handful of names have a meaning here.
  TorchObject* call(const TorchObject& callee, const TorchObject& arguments);

  // A persistent id: ("storage", type, key, location, elements[, view]).
  TorchObject* storage(const TorchObject& id);

  Unpickled take() { return std::move(out_); }

 private:
  using Objects = std::vector<const TorchObject*>;

  TorchObject* opaque(const std::string& name);
  TorchObject* skip(const std::string& name);  // opaque, and counted
  TorchObject* dictionary(const Objects& given);
  TorchObject* sequence(const Objects& given);
  TorchObject* tensor(const std::string& name, const Objects& given);
  TorchObject* tensor_of_type(const Objects& given);
  void count_copies(size_t bytes);

  Unpickled out_;
  size_t copied_ = 0;  // bytes
  std::unordered_set<const TorchObject*> globals_;
  std::unordered_map<const TorchObject*, std::pair<size_t, at::ScalarType>> storages_;
  std::unordered_map<std::string, size_t> storage_of_key_;
};

}  // namespace elf
