// The interpreter behind torch_pickle.h: one pickle to objects; nothing is called, nothing imported.
#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "elf/tensor/torch_pickle.h"

namespace elf {

// A storage by its key; the bytes lie elsewhere in the file.
struct PickledStorage {
  std::string key;
  at::ScalarType dtype = at::kByte;
  int64_t elements = 0;
};

// A tensor to be made once the storages are there.
struct PickledTensor {
  TorchObject* object = nullptr;
  size_t storage = 0;  // index into Unpickled::storages
  at::ScalarType dtype = at::kFloat;
  int64_t offset = 0;  // in elements
  std::vector<int64_t> sizes, strides;
};

struct Unpickled {
  std::deque<TorchObject> objects;  // owns all of them: no recursion when they are freed, cycles do no harm
  const TorchObject* root = nullptr;
  std::vector<PickledStorage> storages;  // one a key
  std::vector<PickledTensor> tensors;
  std::map<std::string, int64_t> skipped;
  size_t end = 0;  // bytes consumed
};

// Throws Error (usage): "WHERE: byte N: what is wrong".
Unpickled unpickle(std::string_view bytes, const std::string& where);

}  // namespace elf
