// Instructions and names that the pickle interpreter knows.
#pragma once

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace elf::pickle {

// Instructions of the pickle machine (Python's pickletools has the full list).
enum Op : unsigned char {
  kProto = 0x80,
  kFrame = 0x95,
  kStop = '.',
  kMark = '(',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kNone = 'N',
  kTrue = 0x88,
  kFalse = 0x89,
  kInt4 = 'J',
  kInt1 = 'K',
  kInt2 = 'M',
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kReal = 'G',
  kUnicode4 = 'X',
  kUnicode1 = 0x8c,
  kUnicode8 = 0x8d,
  kString4 = 'T',
  kString1 = 'U',
  kBytes4 = 'B',
  kBytes1 = 'C',
  kBytes8 = 0x8e,
  kByteArray8 = 0x96,
  kEmptyDict = '}',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kEmptySet = 0x8f,
  kDict = 'd',
  kList = 'l',
  kTuple = 't',
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kFrozenSet = 0x91,
  kAppend = 'a',
  kAppends = 'e',
  kSetItem = 's',
  kSetItems = 'u',
  kAddItems = 0x90,
  kPut1 = 'q',
  kPut4 = 'r',
  kMemoize = 0x94,
  kGet1 = 'h',
  kGet4 = 'j',
  kGlobal = 'c',
  kStackGlobal = 0x93,
  kReduce = 'R',
  kNewObject = 0x81,
  kNewObjectEx = 0x92,
  kBuild = 'b',
  kPersistentId = 'Q',
};

inline constexpr std::pair<std::string_view, at::ScalarType> kStorageTypes[] = {
    {"torch.DoubleStorage", at::kDouble}, {"torch.FloatStorage", at::kFloat},
    {"torch.HalfStorage", at::kHalf},     {"torch.BFloat16Storage", at::kBFloat16},
    {"torch.LongStorage", at::kLong},     {"torch.IntStorage", at::kInt},
    {"torch.ShortStorage", at::kShort},   {"torch.CharStorage", at::kChar},
    {"torch.ByteStorage", at::kByte},     {"torch.BoolStorage", at::kBool},
    {"torch.UntypedStorage", at::kByte},  {"torch.storage.UntypedStorage", at::kByte}};

inline constexpr std::pair<std::string_view, at::ScalarType> kDtypes[] = {
    {"torch.float64", at::kDouble},    {"torch.float32", at::kFloat}, {"torch.float16", at::kHalf},
    {"torch.bfloat16", at::kBFloat16}, {"torch.int64", at::kLong},    {"torch.int32", at::kInt},
    {"torch.int16", at::kShort},       {"torch.int8", at::kChar},     {"torch.uint8", at::kByte},
    {"torch.bool", at::kBool}};

// What the interpreter has a meaning for. `torch.Tensor` and Parameter stand for a tensor as it is.
inline constexpr std::string_view kUnderstood[] = {"collections.OrderedDict",
                                                   "collections.defaultdict",
                                                   "builtins.dict",
                                                   "__builtin__.dict",
                                                   "builtins.list",
                                                   "__builtin__.list",
                                                   "builtins.tuple",
                                                   "builtins.set",
                                                   "__builtin__.set",
                                                   "torch.Size",
                                                   "_codecs.encode",
                                                   "torch._utils._rebuild_tensor",
                                                   "torch._utils._rebuild_tensor_v2",
                                                   "torch._utils._rebuild_tensor_v3",
                                                   "torch._utils._rebuild_parameter",
                                                   "torch._utils._rebuild_parameter_with_state",
                                                   "torch._tensor._rebuild_from_type_v2",
                                                   "torch.Tensor",
                                                   "torch.nn.parameter.Parameter",
                                                   "torch.nn.Parameter",
                                                   "torch.device"};

template <class Table>
const at::ScalarType* find_type(const Table& table, std::string_view name) {
  for (const auto& [known, type] : table) {
    if (known == name) return &type;
  }
  return nullptr;
}

inline bool is_understood(std::string_view name) {
  return std::find(std::begin(kUnderstood), std::end(kUnderstood), name) != std::end(kUnderstood) ||
         find_type(kStorageTypes, name) || find_type(kDtypes, name);
}

}  // namespace elf::pickle
