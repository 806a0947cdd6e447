#include "pickle_objects.h"

#include "elf/base/error.h"
#include "pickle_ops.h"

namespace elf {
namespace {

using namespace pickle;
using Kind = TorchObject::Kind;

constexpr size_t kMostObjects = 20'000'000;
constexpr size_t kSmallCopies = size_t{1} << 20, kCopiesPerObject = 128;  // bytes
constexpr int64_t kLargest = int64_t{1} << 48;  // of sizes, strides, offsets: more than any file holds
constexpr size_t kMostDimensions = 64;          // what LibTorch's operators take

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw PickleFault(cat(parts...));
}

std::vector<int64_t> integers(const TorchObject& list, const char* what) {
  std::vector<int64_t> values;
  if (!list.is(Kind::kSequence)) fail("a tensor whose ", what, " are no integers");
  for (const TorchObject* item : list.items) {
    if (!item->is(Kind::kInteger) || item->integer < 0 || item->integer > kLargest)
      fail("a tensor whose ", what, " are no integers from 0 on");
    values.push_back(item->integer);
  }
  return values;
}

int64_t bytes_of(const PickledStorage& storage) {
  return storage.elements * static_cast<int64_t>(c10::elementSize(storage.dtype));
}

}  // namespace

TorchObject* PickleObjects::make(Kind kind) {
  if (out_.objects.size() >= kMostObjects) fail("more objects than a checkpoint has");
  out_.objects.emplace_back().kind = kind;
  return &out_.objects.back();
}

TorchObject* PickleObjects::opaque(const std::string& name) {
  count_copies(name.size());
  TorchObject* object = make(Kind::kOpaque);
  object->text = name;
  return object;
}

TorchObject* PickleObjects::skip(const std::string& name) {
  ++out_.skipped[name];
  return opaque(name);
}

TorchObject* PickleObjects::global(const std::string& name) {
  TorchObject* object = opaque(name);
  globals_.insert(object);
  if (!is_understood(name)) out_.skipped.try_emplace(name, 0);
  return object;
}

TorchObject* PickleObjects::call(const TorchObject& callee, const TorchObject& arguments) {
  if (!callee.is(Kind::kOpaque)) fail("a call of what is no function; the file is damaged");
  const std::string& name = callee.text;
  if (!globals_.contains(&callee) || !is_understood(name)) return skip(name);
  if (!arguments.is(Kind::kSequence)) fail(name, " without a list of arguments");
  const Objects& given = arguments.items;
  if (name.starts_with("torch._utils._rebuild_tensor")) return tensor(name, given);
  if (name.starts_with("torch._utils._rebuild_parameter")) {  // (tensor, requires_grad, hooks)
    if (given.empty() || !(given[0]->is(Kind::kTensor) || given[0]->is(Kind::kOpaque)))
      fail(name, " of what is no tensor");
    return const_cast<TorchObject*>(given[0]);  // the objects are our own
  }
  if (name == "torch._tensor._rebuild_from_type_v2") return tensor_of_type(given);
  if (name.ends_with("Dict") || name.ends_with("dict")) return dictionary(given);
  if (name == "torch.Size" || name.ends_with(".list") || name.ends_with(".tuple") || name.ends_with(".set")) {
    return sequence(given);
  }
  if (name == "_codecs.encode" && !given.empty() && given[0]->is(Kind::kText)) {  // how bytes are written
    count_copies(given[0]->text.size());
    TorchObject* bytes = make(Kind::kBytes);
    bytes->text = given[0]->text;
    return bytes;
  }
  return opaque(name);
}

// OrderedDict() or OrderedDict([[key, value], ...]); defaultdict(factory).
TorchObject* PickleObjects::dictionary(const Objects& given) {
  TorchObject* made = make(Kind::kDict);
  if (given.empty() || !given[0]->is(Kind::kSequence)) return made;
  count_copies(given[0]->items.size() * sizeof(void*));
  for (const TorchObject* pair : given[0]->items) {
    if (!pair->is(Kind::kSequence) || pair->items.size() != 2) fail("a dictionary of what are no pairs");
    made->entries.emplace_back(pair->items[0], pair->items[1]);
  }
  return made;
}

TorchObject* PickleObjects::sequence(const Objects& given) {
  TorchObject* made = make(Kind::kSequence);
  if (given.empty() || !given[0]->is(Kind::kSequence)) return made;
  count_copies(given[0]->items.size() * sizeof(void*));
  made->items = given[0]->items;
  return made;
}

// Honest files copy a list once, when they make something of it, and names are short: memory stays within a
// multiple of the file's size.
void PickleObjects::count_copies(size_t bytes) {
  copied_ += bytes;
  if (copied_ > kSmallCopies + kCopiesPerObject * out_.objects.size())
    fail("the same list or name is copied again and again; the file is damaged");
}

TorchObject* PickleObjects::storage(const TorchObject& id) {
  const bool known = id.is(Kind::kSequence) && id.items.size() >= 5 && id.items[0]->is(Kind::kText) &&
                     id.items[0]->text == "storage" && id.items[1]->is(Kind::kOpaque) &&
                     id.items[2]->is(Kind::kText) && id.items[4]->is(Kind::kInteger);
  if (!known) return skip("a persistent object that is no storage");
  const at::ScalarType* type = find_type(kStorageTypes, id.items[1]->text);
  if (!type) return skip(id.items[1]->text);
  if (id.items.size() > 5 && !id.items[5]->is(Kind::kNone)) return skip("a view of a storage");
  const PickledStorage stored{id.items[2]->text, *type, id.items[4]->integer};
  if (stored.elements < 0 || stored.elements > kLargest)
    fail("storage '", stored.key, "' has ", stored.elements, " elements");
  const auto [place, added] = storage_of_key_.emplace(stored.key, out_.storages.size());
  if (added) out_.storages.push_back(stored);
  if (bytes_of(out_.storages[place->second]) != bytes_of(stored))
    fail("storage '", stored.key, "' has two sizes; the file is damaged");
  TorchObject* object = opaque("a storage");
  storages_[object] = {place->second, stored.dtype};
  return object;
}

// _rebuild_tensor(storage, offset, sizes, strides); _v2 has requires_grad and hooks behind these, _v3 also a
// dtype.
TorchObject* PickleObjects::tensor(const std::string& name, const Objects& given) {
  if (given.size() < 4) fail(name, " with ", given.size(), " arguments, expected at least 4");
  const auto place = storages_.find(given[0]);
  if (place == storages_.end()) {
    if (!given[0]->is(Kind::kOpaque)) fail("a tensor without a storage; the file is damaged");
    return opaque("a tensor on " + given[0]->text);
  }
  PickledTensor made;
  made.storage = place->second.first;
  made.dtype = place->second.second;
  if (name.ends_with("_v3")) {
    const bool has_dtype = given.size() > 6 && given[6]->is(Kind::kOpaque);
    const at::ScalarType* type = has_dtype ? find_type(kDtypes, given[6]->text) : nullptr;
    if (!type) return skip(has_dtype ? given[6]->text : "a tensor without a dtype");
    made.dtype = *type;
  }
  if (!given[1]->is(Kind::kInteger) || given[1]->integer < 0 || given[1]->integer > kLargest)
    fail("a tensor whose offset is no integer from 0 on");
  made.offset = given[1]->integer;
  made.sizes = integers(*given[2], "sizes");
  made.strides = integers(*given[3], "strides");
  if (made.sizes.size() != made.strides.size()) fail("a tensor with more sizes than strides, or fewer");
  if (made.sizes.size() > kMostDimensions)
    fail("a tensor of ", made.sizes.size(), " dimensions, expected at most ", kMostDimensions);
  made.object = make(Kind::kTensor);
  out_.tensors.push_back(made);
  return made.object;
}

// _rebuild_from_type_v2(function, type, arguments, attributes): a tensor with attributes, or of a subclass.
TorchObject* PickleObjects::tensor_of_type(const Objects& given) {
  if (given.size() < 3 || !given[1]->is(Kind::kOpaque)) fail("a tensor subclass without its type");
  const bool plain = given[1]->text == "torch.Tensor" || given[1]->text.ends_with(".Parameter");
  const bool rebuilt = given[0]->is(Kind::kOpaque) && given[0]->text.starts_with("torch._utils._rebuild_");
  return plain && rebuilt ? call(*given[0], *given[2]) : skip(given[1]->text);
}

}  // namespace elf
