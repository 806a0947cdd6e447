// What the instructions of a pickle make, in files put together here, and what is refused in them.
#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "elf/tensor/torch_pickle.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using test::usage_message;
using ::testing::HasSubstr;
using Kind = TorchObject::Kind;
using Pieces = std::vector<std::string>;

template <class T>
std::string raw(T value) {  // little endian, as this machine
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}
std::string joined(const Pieces& pieces) {
  std::string all;
  for (const std::string& piece : pieces) all += piece;
  return all;
}

// Pickles of single values.
std::string text(const std::string& value) {
  return "U" + raw(static_cast<uint8_t>(value.size())) + value;
}
std::string integer(int64_t value) {
  return "\x8a\x08" + raw(value);
}
std::string tuple(const Pieces& items) {
  return "(" + joined(items) + "t";
}
std::string list(const Pieces& items) {
  return "(" + joined(items) + "l";
}
std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
std::string call(const std::string& function, const Pieces& arguments) {
  return function + tuple(arguments) + "R";
}
std::string storage(const std::string& type, int64_t elements) {
  return tuple({text("storage"), global("torch", type), text("0"), text("cpu"), integer(elements)}) + "Q";
}
// Behind the strides: requires_grad, hooks and, in version 3, a dtype.
std::string tensor(const std::string& version, const std::string& storage, int64_t offset,
                   const Pieces& sizes, const Pieces& strides, const Pieces& more = {}) {
  return call(global("torch._utils", "_rebuild_tensor" + version),
              {storage, integer(offset), tuple(sizes), tuple(strides), "\x89", "N", joined(more)});
}

class Pickle : public ::testing::Test {
 protected:
  // A file in the older format: magic number, protocol, facts of the machine, the object, the keys of the
  // storages and these: the one named "0", where there is one, as its number of elements and its bytes.
  std::string write(const std::string& object, const std::string& stored = "",
                    const std::string& facts = "}") const {
    const std::string magic = "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", protocol = "\x80\x02M\xe9\x03.",
                      begin = "\x80\x02", keys = stored.empty() ? "]" : list({text("0")});
    return folder_.write(
        "x.pt", magic + protocol + begin + facts + "." + begin + object + "." + begin + keys + "." + stored);
  }
  const TorchObject& made(const std::string& object, const std::string& stored = "") {
    file_ = TorchFile::read(write(object, stored));
    return file_.root();
  }
  std::string message(const std::string& object, const std::string& stored = "") const {
    return usage_message([&] { TorchFile::read(write(object, stored)); });
  }
  // A zip archive as torch.save makes them, of these members.
  std::string write_zip(const std::vector<std::pair<std::string, std::string>>& members) const {
    const fs::path path = folder_ / "zip.pt";
    std::ofstream out(path, std::ios::binary);
    caffe2::serialize::PyTorchStreamWriter zip([&](const void* bytes, size_t count) {
      out.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
      return count;
    });
    for (const auto& [name, content] : members) zip.writeRecord(name, content.data(), content.size());
    zip.writeEndOfFile();
    return path.string();
  }

  const test::TemporaryFolder folder_;
  TorchFile file_;
};

TEST_F(Pickle, IntegersOfAnyLength) {
  const auto long1 = [](const std::string& digits) {
    return "\x8a" + raw(static_cast<uint8_t>(digits.size())) + digits;
  };
  const auto long4 = [](const std::string& digits) {
    return "\x8b" + raw(static_cast<uint32_t>(digits.size())) + digits;
  };
  const std::pair<std::string, int64_t> cases[] = {{"", 0},
                                                   {"\x7f", 127},
                                                   {"\x80", -128},
                                                   {"\xfe\xff", -2},
                                                   {raw(int64_t{1} << 40), int64_t{1} << 40},
                                                   {raw(INT64_MIN), INT64_MIN}};
  for (const auto& [digits, value] : cases) {
    for (const std::string& pickle : {long1(digits), long4(digits)}) {
      const TorchObject& object = made(pickle);
      EXPECT_TRUE(object.is(Kind::kInteger)) << value;
      EXPECT_EQ(object.integer, value);
    }
  }
  for (const std::string& pickle : {long1(std::string(9, '\1')), long4(std::string(9, '\1'))}) {
    const TorchObject& object = made(pickle);  // more than 64 bits: no number to count with
    EXPECT_TRUE(object.is(Kind::kOpaque));
    EXPECT_EQ(object.text, "int");
  }
  EXPECT_THAT(message("\x8b" + raw(uint32_t{0x7fffffff})), HasSubstr("cut short"));
}

TEST_F(Pickle, TextsAndBytesOfEveryForm) {
  struct Form {
    char instruction;
    size_t width;  // of the length, in bytes
    Kind kind;
  };
  const std::string content("a\0b", 3);
  for (const Form& form :
       {Form{'\x8c', 1, Kind::kText}, Form{'X', 4, Kind::kText}, Form{'\x8d', 8, Kind::kText},
        Form{'U', 1, Kind::kText}, Form{'T', 4, Kind::kText}, Form{'C', 1, Kind::kBytes},
        Form{'B', 4, Kind::kBytes}, Form{'\x8e', 8, Kind::kBytes}, Form{'\x96', 8, Kind::kBytes}}) {
    const std::string instruction(1, form.instruction);
    const TorchObject& object = made(instruction + raw(uint64_t{3}).substr(0, form.width) + content);
    EXPECT_TRUE(object.is(form.kind)) << form.instruction;
    EXPECT_EQ(object.text, content) << form.instruction;
    EXPECT_THAT(message(instruction + std::string(form.width, '\xff') + content), HasSubstr("cut short"))
        << form.instruction;
  }
}

TEST_F(Pickle, ObjectsMadeWithKeywords) {
  const TorchObject& dictionary =
      made(global("collections", "OrderedDict") + ")}\x92" + text("k") + integer(5) + "s");
  ASSERT_TRUE(dictionary.is(Kind::kDict));
  EXPECT_EQ(dictionary.find("k")->integer, 5);
  EXPECT_EQ(file_.skipped_text(), "");
  const TorchObject& foreign = made(global("posix", "system") + tuple({text("id")}) + "}\x92");
  EXPECT_TRUE(foreign.is(Kind::kOpaque));
  EXPECT_EQ(foreign.text, "posix.system");
  EXPECT_EQ(file_.skipped_text(), "posix.system (1)");
}

// What is left on the stack is taken by a tuple of one, which does not reach below a mark.
TEST_F(Pickle, AMarkIsTakenBack) {
  const TorchObject& one = made(integer(7) + "(0\x85");
  ASSERT_EQ(one.items.size(), 1u);
  EXPECT_EQ(one.items[0]->integer, 7);
  EXPECT_THAT(message(integer(7) + "(\x85"), HasSubstr("stack is empty"));
}

TEST_F(Pickle, ADictionaryOfPairs) {
  const std::string ordered = global("collections", "OrderedDict");
  const TorchObject& object =
      made(call(ordered, {list({tuple({text("b"), integer(1)}), list({text("a"), integer(2)})})}));
  ASSERT_TRUE(object.is(Kind::kDict));
  ASSERT_EQ(object.entries.size(), 2u);
  EXPECT_EQ(object.entries[0].first->text, "b");
  EXPECT_EQ(object.find("b")->integer, 1);
  EXPECT_EQ(object.find("a")->integer, 2);
  for (const std::string& item : {integer(1), tuple({text("b"), integer(1), integer(2)})})
    EXPECT_THAT(message(call(ordered, {list({item})})), HasSubstr("a dictionary of what are no pairs"));
}

TEST_F(Pickle, TensorsThatNameTheirDtype) {
  const std::string stored = raw(int64_t{8}) + raw(int32_t{1}) + raw(int32_t{-2}),
                    untyped = storage("UntypedStorage", 8), int32 = global("torch", "int32");
  EXPECT_TRUE(at::equal(made(tensor("_v3", untyped, 0, {integer(2)}, {integer(1)}, {int32}), stored).tensor,
                        at::tensor(std::vector<int32_t>{1, -2})));
  EXPECT_TRUE(at::equal(made(tensor("_v3", untyped, 1, {integer(1)}, {integer(1)}, {int32}), stored).tensor,
                        at::tensor(std::vector<int32_t>{-2})));
  EXPECT_TRUE(
      made(tensor("_v3", untyped, 0, {integer(1)}, {integer(1)}, {global("torch", "complex64")}), stored)
          .is(Kind::kOpaque));
  EXPECT_EQ(file_.skipped_text(), "torch.complex64 (1)");
  EXPECT_TRUE(made(tensor("_v3", untyped, 0, {integer(1)}, {integer(1)}, {"N"}), stored).is(Kind::kOpaque));
  EXPECT_EQ(file_.skipped_text(), "a tensor without a dtype (1)");
}

TEST_F(Pickle, TensorsThatCannotBe) {
  const std::string one = integer(1), zero = integer(0), most = integer(int64_t{1} << 48),
                    floats = storage("FloatStorage", 1), stored = raw(int64_t{1}) + raw(1.0F);
  EXPECT_TRUE(at::equal(made(tensor("_v2", floats, 0, {one}, {one}), stored).tensor, at::ones({1})));
  const Pieces ones(65, one);
  const std::pair<std::string, std::string> cases[] = {
      {tensor("_v2", storage("FloatStorage", -1), 0, {one}, {one}), "storage '0' has -1 elements"},
      {tensor("_v2", floats, -1, {one}, {one}), "a tensor whose offset is no integer from 0 on"},
      {tensor("_v2", floats, 0, ones, ones), "a tensor of 65 dimensions, expected at most 64"},
      {tensor("_v2", floats, 0, {most, most, zero}, {zero, zero, zero}), "a tensor on storage '0' cannot be"},
      {call(global("torch._utils", "_rebuild_parameter"), {one}), "_rebuild_parameter of what is no tensor"}};
  for (const auto& [pickle, expected] : cases) EXPECT_THAT(message(pickle, stored), HasSubstr(expected));
}

TEST_F(Pickle, WhatIsNoTensorIsCalledByItsKind) {
  const auto refusal = [](const TorchObject& object) {
    return usage_message([&] { tensors_of(object, "here"); });
  };
  const std::pair<std::string, std::string> cases[] = {
      {"\x88", "a boolean"}, {integer(1), "an integer"}, {"G" + std::string(8, '\0'), "a number"},
      {text("t"), "a text"}, {"C\x01z", "bytes"},        {"]", "a list"},
      {"}", "a dictionary"}};
  for (const auto& [value, kind] : cases)
    EXPECT_THAT(refusal(made("}" + text("x") + value + "s")),
                HasSubstr("here: 'x' is " + kind + ", expected a tensor"));
  EXPECT_THAT(refusal(made("}N" + integer(1) + "s")), HasSubstr("a key that is None, expected a name"));
  EXPECT_THAT(refusal(made(tensor("_v2", storage("FloatStorage", 1), 0, {integer(1)}, {integer(1)}),
                           raw(int64_t{1}) + raw(1.0F))),
              HasSubstr("expected a dictionary of tensors, found what is a tensor"));
  EXPECT_TRUE(tensors_of(made("}" + text("x") + "Ns"), "here").empty());
}

TEST_F(Pickle, FilesOfABigEndianMachineAreRefused) {
  const auto facts = [](const std::string& value) { return "}" + text("little_endian") + value + "s"; };
  EXPECT_TRUE(TorchFile::read(write("}", "", facts("\x88"))).root().is(Kind::kDict));
  EXPECT_THAT(usage_message([&] { TorchFile::read(write("}", "", facts("\x89"))); }),
              HasSubstr("x.pt: was written on a big-endian machine"));
  const std::string empty = "\x80\x02}.";
  EXPECT_TRUE(
      TorchFile::read(write_zip({{"data.pkl", empty}, {"byteorder", "little"}})).root().is(Kind::kDict));
  EXPECT_THAT(usage_message([&] {
                TorchFile::read(write_zip({{"data.pkl", empty}, {"byteorder", "big"}}));
              }),
              HasSubstr("zip.pt: was written on a big-endian machine"));
}

TEST_F(Pickle, AMemberOfAnotherSizeIsRefused) {
  const std::string pickle =
      "\x80\x02" + tensor("_v2", storage("FloatStorage", 1), 0, {integer(1)}, {integer(1)}) + ".";
  EXPECT_TRUE(
      at::equal(TorchFile::read(write_zip({{"data.pkl", pickle}, {"data/0", raw(1.0F)}})).root().tensor,
                at::ones({1})));
  EXPECT_THAT(usage_message([&] {
                TorchFile::read(write_zip({{"data.pkl", pickle}, {"data/0", "abc"}}));
              }),
              HasSubstr("data/0' has 3 bytes, its tensors expect 4"));
}

}  // namespace
}  // namespace elf
