#include "model_proto.h"

#include <cstdint>

namespace elf::text {
namespace {

// Fields of a message, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  // The next field; false at the end or when the bytes are no message (good() tells which).
  bool next() {
    if (rest_.empty()) return false;
    uint64_t tag = 0;
    if (!varint(tag)) return fail();
    number_ = static_cast<int>(tag >> 3);
    switch (tag & 7) {
      case 0:
        return varint(value_) || fail();
      case 1:
        return skip(8) || fail();
      case 2: {
        uint64_t length = 0;
        if (!varint(length) || length > rest_.size()) return fail();
        content_ = rest_.substr(0, length);
        rest_.remove_prefix(length);
        return true;
      }
      case 5:
        return skip(4) || fail();
      default:
        return fail();
    }
  }

  bool good() const { return good_; }
  int number() const { return number_; }
  uint64_t value() const { return value_; }              // of a varint
  std::string_view content() const { return content_; }  // of a string or message

 private:
  bool fail() { return good_ = false; }
  bool skip(size_t count) {
    if (rest_.size() < count) return false;
    rest_.remove_prefix(count);
    return true;
  }
  bool varint(uint64_t& result) {
    result = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      result |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  std::string_view rest_, content_;
  int number_ = 0;
  uint64_t value_ = 0;
  bool good_ = true;
};

// Field numbers of sentencepiece_model.proto.
constexpr int kPieces = 1, kTrainerSpec = 2, kNormalizerSpec = 3;
constexpr int kModelType = 3;                                    // of the trainer's settings
constexpr int kAddDummyPrefix = 3, kRemoveExtraWhitespaces = 4;  // of the normaliser's settings

}  // namespace

ModelFacts read_model_facts(std::string_view model) {
  static constexpr const char* kTypes[] = {"unigram", "unigram", "bpe", "word", "char"};
  ModelFacts facts;
  bool trainer = false, normalizer = false;
  Fields top(model);
  while (top.next()) {
    if (top.number() == kPieces) ++facts.pieces;
    if (top.number() == kTrainerSpec) {
      trainer = true;
      for (Fields f(top.content()); f.next();) {
        if (f.number() == kModelType && f.value() < 5) facts.model_type = kTypes[f.value()];
      }
    }
    if (top.number() == kNormalizerSpec) {
      normalizer = true;
      for (Fields f(top.content()); f.next();) {
        if (f.number() == kAddDummyPrefix) facts.add_dummy_prefix = f.value() != 0;
        if (f.number() == kRemoveExtraWhitespaces) facts.remove_extra_whitespaces = f.value() != 0;
      }
    }
  }
  facts.whole = top.good() && trainer && normalizer && facts.pieces > 0;
  return facts;
}

}  // namespace elf::text
