// Files of torch.save against what Python reads from them (tests/oracle/torch_files.py wrote both).
#include "elf/tensor/torch_pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "elf/base/files.h"
#include "support/errors.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using test::golden;
using test::usage_message;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Kind = TorchObject::Kind;

// The older format up to its object: magic number, protocol, facts of the machine.
constexpr const char* kLegacyHead = "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}.";

void expect_equal(const TensorMap& found, const TensorMap& expected) {
  EXPECT_EQ(found.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_EQ(found.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(at::equal(found.at(name), tensor)) << name;
  }
}

class TorchFileCase : public ::testing::TestWithParam<const char*> {};

TEST_P(TorchFileCase, EqualsWhatPythonReads) {
  const std::string name = std::string("torch/") + GetParam();
  const TorchFile file = TorchFile::read(golden(name + ".pt"));
  expect_equal(all_tensors(file.root()), read_safetensors(golden(name + ".safetensors")));
}
INSTANTIATE_TEST_SUITE_P(Golden, TorchFileCase,
                         ::testing::Values("ordered_dict", "dict", "nested", "parameter", "dtypes", "shared",
                                           "offset_and_strides", "containers", "legacy", "protocol_4",
                                           "attributes", "namespace", "bad_object"),
                         [](const auto& info) { return std::string(info.param); });

// The limit is that of a pickle: in the older format the tensors' bytes lie behind it in the same stream.
TEST(TorchFile, AnOlderFileMayBeLargerThanAPickle) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("large.pt", read_file(golden("torch/legacy.pt")));
  std::filesystem::resize_file(path, uintmax_t{257} << 20);
  expect_equal(all_tensors(TorchFile::read(path).root()),
               read_safetensors(golden("torch/legacy.safetensors")));
}

TEST(TorchFile, ScalarsOfANestedCheckpoint) {
  const TorchFile file = TorchFile::read(golden("torch/nested.pt"));
  EXPECT_EQ(file.root().find("step")->integer, int64_t{1} << 40);
  EXPECT_EQ(file.root().find("name")->text, "tiny");
  EXPECT_TRUE(file.root().find("done")->is(Kind::kBool));
  const TorchObject* groups = file.root().find("optimizer")->find("param_groups");
  EXPECT_DOUBLE_EQ(groups->items.at(0)->find("lr")->real, 1e-3);
  EXPECT_EQ(groups->items.at(0)->find("betas")->items.size(), 2);
  EXPECT_TRUE(file.skipped().empty());
  EXPECT_EQ(file.root().find("absent"), nullptr);
}

TEST(TorchFile, TensorsOfOneStorageShareIt) {
  const TorchFile file = TorchFile::read(golden("torch/shared.pt"));
  const TorchObject& root = file.root();
  EXPECT_TRUE(root.find("a")->tensor.is_alias_of(root.find("b")->tensor));
  EXPECT_TRUE(root.find("a")->tensor.is_alias_of(root.find("column")->tensor));
}

TEST(TorchFile, GoldenCheckpointsOfThePublishedCode) {
  const TorchFile file = TorchFile::read(golden("elf_tiny/checkpoint.pt"));
  expect_equal(tensors_of(*file.root().find("params"), "params"),
               read_safetensors(golden("elf_tiny/params.safetensors")));
  expect_equal(tensors_of(*file.root().find("ema_params1"), "ema"),
               read_safetensors(golden("elf_tiny/ema.safetensors")));
  EXPECT_EQ(file.root().find("step")->integer, 2);
  const TensorMap expected = read_safetensors(golden("elf_tiny/opt_state.safetensors"));
  const TensorMap all = all_tensors(*file.root().find("opt_state"));
  const nlohmann::json order =
      test::golden_json("elf_tiny/config.json").at("checkpoint").at("opt_param_order");
  for (const auto& [name, tensor] : expected) {
    const std::string parameter = name.substr(0, name.find(':')), field = name.substr(name.find(':') + 1);
    const auto index = std::find(order.begin(), order.end(), parameter) - order.begin();
    EXPECT_TRUE(at::equal(all.at("state." + std::to_string(index) + "." + field), tensor)) << name;
  }
  expect_equal(read_torch_state_dict(golden("t5/model_relu_bin/pytorch_model.bin")),
               all_tensors(TorchFile::read(golden("t5/model_relu_bin/pytorch_model.bin")).root()));
}

TEST(TorchFile, ForeignObjectsAreListedAndNotRun) {
  const TorchFile with_namespace = TorchFile::read(golden("torch/namespace.pt"));
  EXPECT_THAT(with_namespace.skipped_text(), HasSubstr("argparse.Namespace (1)"));
  EXPECT_TRUE(with_namespace.root().find("args")->is(Kind::kOpaque));
  EXPECT_EQ(read_torch_state_dict(golden("torch/namespace.pt")).size(), 1);

  const TorchFile with_call = TorchFile::read(golden("torch/bad_object.pt"));
  EXPECT_THAT(with_call.skipped_text(), HasSubstr("posix.system (1)"));
  EXPECT_EQ(with_call.root().find("extra")->text, "posix.system");
  EXPECT_FALSE(fs::exists("was_run"));

  // On the way to a tensor it is an error.
  EXPECT_THAT(
      usage_message([] { read_torch_state_dict(golden("torch/trap.pt")); }),
      AllOf(HasSubstr("trap.pt"), HasSubstr("'trap'"), HasSubstr("posix.system"), HasSubstr("not run")));
  EXPECT_FALSE(fs::exists("was_run"));
  EXPECT_THAT(usage_message([] { read_torch_state_dict(golden("torch/complex.pt")); }),
              AllOf(HasSubstr("'complex'"), HasSubstr("torch.ComplexFloatStorage")));
  EXPECT_THAT(usage_message([] { read_torch_state_dict(golden("torch/module.pt")); }),
              AllOf(HasSubstr("torch.nn.modules.linear.Linear"), HasSubstr("state_dict()")));
}

class DamagedTorchFile : public ::testing::Test {
 protected:
  // The message for `content` as a file.
  std::string message(const std::string& content) {
    const std::string path = folder_.write("x.pt", content);
    const std::string text = usage_message([&] { TorchFile::read(path); });
    EXPECT_THAT(text, HasSubstr("x.pt"));
    return text;
  }
  std::string pickle_message(const std::string& pickle) {  // behind the head of the older format
    return message(std::string(kLegacyHead) + pickle);
  }
  test::TemporaryFolder folder_;
};

TEST_F(DamagedTorchFile, IsNoFileOfTorchSave) {
  EXPECT_THAT(message(""), HasSubstr("empty"));
  EXPECT_THAT(message("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
              HasSubstr("git lfs pull"));
  EXPECT_THAT(message("<!DOCTYPE html><html></html>"), HasSubstr("HTML"));
  EXPECT_THAT(message("hello"), HasSubstr("no file of torch.save"));
  EXPECT_THAT(message("\x80\x04}."), HasSubstr("bare pickle"));
  EXPECT_THAT(usage_message([&] { TorchFile::read(folder_ / "absent.pt"); }), HasSubstr("no such file"));
  EXPECT_THAT(usage_message([&] { TorchFile::read(folder_.path()); }), HasSubstr("is no file"));
}

TEST_F(DamagedTorchFile, CutShortOrChanged) {
  for (const std::string name : {"torch/dict.pt", "torch/legacy.pt"}) {
    const std::string good = read_file(golden(name));
    for (const size_t cut : {good.size() - 1, good.size() / 2, size_t{40}}) {
      EXPECT_FALSE(message(good.substr(0, cut)).empty()) << name << " " << cut;
    }
  }
  // A changed byte inside a tensor: the checksum tells.
  std::string changed = read_file(golden("torch/dict.pt"));
  const std::string two("\0\0\0@", 4);  // the float 2
  changed[changed.find(two)] = 1;
  EXPECT_THAT(message(changed), HasSubstr("damaged"));
}

TEST_F(DamagedTorchFile, InstructionsThatAreNotWrittenForTensors) {
  EXPECT_THAT(pickle_message("(iposix\nsystem\n."),
              AllOf(HasSubstr("instruction 0x69"), HasSubstr("refused")));
  EXPECT_THAT(pickle_message("(cposix\nsystem\nU\x02ido."), HasSubstr("instruction 0x6f"));
  EXPECT_THAT(pickle_message("\x82\x01."), HasSubstr("instruction 0x82"));
  EXPECT_THAT(pickle_message("\x80\x09}."), HasSubstr("protocol 9"));
  EXPECT_THAT(pickle_message("h\x07."), HasSubstr("before it is made"));
  EXPECT_THAT(pickle_message("."), HasSubstr("stack is empty"));
  EXPECT_THAT(pickle_message("X\xff\xff\xff\x7f..."), HasSubstr("cut short"));
  EXPECT_THAT(pickle_message("K\x01)R."), HasSubstr("no function"));
  EXPECT_THAT(pickle_message("}K\x01"
                             "a."),
              HasSubstr("no list"));
  EXPECT_THAT(pickle_message("]K\x01K\x02s."), HasSubstr("no dictionary"));
}

// A tensor of one element that claims more.
TEST_F(DamagedTorchFile, TensorsBeyondTheirStorage) {
  const auto tensor = [](const std::string& offset, const std::string& sizes, const std::string& strides) {
    return "\x80\x02"
           "ctorch._utils\n_rebuild_tensor_v2\n((U\x07storagectorch\nFloatStorage\nU\x01"
           "0U\x03"
           "cpuK\x01NtQ" +
           offset + "(" + sizes + "t(" + strides +
           "t\x89NtR.\x80\x02](U\x01"
           "0e." +
           std::string("\x01\0\0\0\0\0\0\0\0\0\x80?", 12);
  };
  EXPECT_THAT(pickle_message(tensor("K\x01", "K\x01", "K\x01")), HasSubstr("reaches to element 2"));
  EXPECT_THAT(pickle_message(tensor(std::string("K\0", 2), "K\x02", "K\x01")),
              HasSubstr("reaches to element 2"));
  EXPECT_THAT(pickle_message(tensor(std::string("K\0", 2), "J\xff\xff\xff\x7f", std::string("K\0", 2))),
              HasSubstr("larger than the file"));
  EXPECT_THAT(pickle_message(tensor(std::string("K\0", 2), "J\xff\xff\xff\xff", "K\x01")),
              HasSubstr("from 0 on"));
  EXPECT_THAT(pickle_message(tensor(std::string("K\0", 2), "K\x01K\x01", "K\x01")), HasSubstr("more sizes"));
}

// Memory stays within a multiple of the file: a list is not copied for every two bytes of the file, nor a
// name.
TEST_F(DamagedTorchFile, CopiesWithoutEnd) {
  const std::string large(100'000, 'N');
  const auto calls = [](const std::string& function, const std::string& arguments) {
    std::string pickle = "\x80\x02" + function + "q\x01" + arguments + "q\x02";
    for (int i = 0; i < 10'000; ++i) pickle += "h\x01h\x02R";
    return pickle + ".";
  };
  EXPECT_THAT(pickle_message(calls("cbuiltins\nlist\n", "((" + large + "tt")), HasSubstr("again and again"));
  EXPECT_THAT(pickle_message(calls("c" + large + "\nf\n", ")")), HasSubstr("again and again"));
  const std::string text = "T" + std::string("\xa0\x86\x01\0", 4) + large;  // 100,000 letters
  EXPECT_THAT(pickle_message(calls("c_codecs\nencode\n", "(" + text + "t")), HasSubstr("again and again"));
}

TEST(TorchFile, ObjectsThatContainThemselvesAreRead) {
  const test::TemporaryFolder folder;
  std::string nested(200'000, ']');  // lists in lists: nothing recurses over them
  nested += std::string(199'999, 'a');
  const std::string head = kLegacyHead;
  const std::string deep = folder.write("deep.pt", head + "\x80\x02" + nested + ".\x80\x02].");
  EXPECT_TRUE(all_tensors(TorchFile::read(deep).root()).empty());
  const std::string cycle = folder.write("cycle.pt", head + std::string("\x80\x02]q\0h\0h\0e.", 11));
  EXPECT_THAT(usage_message([&] { TorchFile::read(cycle); }), HasSubstr("no mark"));
  const std::string loop = folder.write("loop.pt", head + std::string("\x80\x02]q\0(h\0h\0e.\x80\x02].", 16));
  EXPECT_TRUE(all_tensors(TorchFile::read(loop).root()).empty());
}

TEST(TorchFile, WhatIsWrittenIsReadBack) {
  const test::TemporaryFolder folder;
  const TensorMap tensors = {{"w", at::arange(6).to(at::kFloat).view({2, 3}).t()},
                             {"half", at::ones({3}, at::kBFloat16)},
                             {"count", at::tensor(5)},
                             {"empty", at::zeros({0, 2})}};
  write_torch_file(folder / "x.pt",
                   {TorchItem::of("params", tensors), TorchItem::of("step", int64_t{1} << 40),
                    TorchItem::of("epoch", int64_t{3})});
  const TorchFile file = TorchFile::read(folder / "x.pt");
  expect_equal(tensors_of(*file.root().find("params"), "params"), tensors);
  EXPECT_EQ(file.root().find("step")->integer, int64_t{1} << 40);
  EXPECT_EQ(file.root().find("epoch")->integer, 3);
  EXPECT_TRUE(file.skipped().empty());
}

TEST(TorchFile, EveryDtypeIsWrittenAndReadBack) {
  const test::TemporaryFolder folder;
  TensorMap tensors;
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt,
                                    at::kShort, at::kChar, at::kByte, at::kBool})
    tensors[at::toString(type)] = at::arange(6).to(type).view({2, 3});
  write_torch_file(folder / "x.pt", TorchItem::of("", tensors).entries);
  const TorchFile file = TorchFile::read(folder / "x.pt");
  expect_equal(tensors_of(file.root(), "x.pt"), tensors);
  EXPECT_TRUE(file.skipped().empty());
  const at::Tensor complex = at::zeros({2}, at::kComplexFloat);
  EXPECT_THAT(usage_message([&] { write_torch_file(folder / "complex.pt", {TorchItem::of("c", complex)}); }),
              HasSubstr("tensors of dtype ComplexFloat cannot be stored"));
  EXPECT_FALSE(fs::exists(folder / "complex.pt"));
}

}  // namespace
}  // namespace elf
