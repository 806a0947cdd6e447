#include "elf/tensor/safetensors.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;

class Safetensors : public ::testing::Test {
 protected:
  // A file of this JSON header and so many data bytes.
  fs::path file_with(const std::string& header, size_t data_bytes) {
    const uint64_t size = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &size, 8);
    write_file(path_, bytes + header + std::string(data_bytes, '\1'));
    return path_;
  }
  std::string refusal(const fs::path& path) {
    try {
      read_safetensors(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
      EXPECT_THAT(error.what(), ::testing::HasSubstr(path.string()));
      return error.what();
    }
    return "accepted";
  }

  const test::TemporaryFolder scratch_;
  const fs::path folder_ = scratch_.path();
  const fs::path path_ = folder_ / "x.safetensors";
};

TEST_F(Safetensors, RoundTripOfDtypesShapesAndMetadata) {
  const TensorMap tensors{{"a", at::arange(6, at::kFloat).reshape({2, 3}).t()},
                          {"b", at::tensor({1, -2}, at::kLong)},
                          {"c", at::ones({3}, at::kBFloat16)},
                          {"empty", at::empty({0, 4})},
                          {"flag", at::ones({2}, at::kBool)},
                          {"scalar", at::scalar_tensor(2.5)}};
  write_safetensors(path_, tensors, {{"made by", "a test"}});
  Metadata metadata;
  const TensorMap read = read_safetensors(path_, metadata);
  EXPECT_EQ(metadata.at("made by"), "a test");
  ASSERT_EQ(read.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(read.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(at::equal(read.at(name), tensor)) << name;
  }
}

TEST_F(Safetensors, RefusesDamage) {
  using ::testing::HasSubstr;
  const std::string good = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  EXPECT_EQ(refusal(file_with(good, 8)), "accepted");
  EXPECT_THAT(refusal(file_with(good, 7)), HasSubstr("truncated"));
  EXPECT_THAT(refusal(file_with(good, 9)), HasSubstr("behind the last tensor"));
  EXPECT_THAT(refusal(file_with(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8)),
              HasSubstr("need 12 bytes"));
  EXPECT_THAT(refusal(file_with(R"({"a":{"dtype":"F9","shape":[2],"data_offsets":[0,8]}})", 8)),
              HasSubstr("dtype 'F9'"));
  EXPECT_THAT(refusal(file_with(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8)),
              HasSubstr("non-negative"));
  EXPECT_THAT(refusal(file_with(R"({"a":{"dtype":"F32","shape":[2]}})", 8)), HasSubstr("expected {dtype"));
  EXPECT_THAT(refusal(file_with(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                                12)),
              HasSubstr("do not follow"));
  EXPECT_THAT(refusal(file_with(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                R"("a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",
                                16)),
              HasSubstr("twice"));
  EXPECT_THAT(
      refusal(file_with(
          R"({"a":{"dtype":"F64","shape":[281474976710656,281474976710656],"data_offsets":[0,8]}})", 8)),
      HasSubstr("larger than the file"));
  EXPECT_THAT(refusal(file_with("[1,2]", 0)), HasSubstr("no JSON object"));
  // Without elements, but with strides that no number holds; more dimensions than operators take.
  EXPECT_THAT(
      refusal(file_with(
          R"({"a":{"dtype":"F64","shape":[281474976710656,281474976710656,0],"data_offsets":[0,0]}})", 0)),
      HasSubstr("larger than the file"));
  EXPECT_EQ(refusal(file_with(R"({"a":{"dtype":"F64","shape":[768,0],"data_offsets":[0,0]}})", 0)),
            "accepted");
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  EXPECT_THAT(refusal(file_with(R"({"a":{"dtype":"U8","shape":[)" + ones + R"(],"data_offsets":[0,1]}})", 1)),
              HasSubstr("65 dimensions"));
  // Printing what is nested recurses.
  EXPECT_THAT(
      refusal(file_with(
          R"({"__metadata__":{"a":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}}", 0)),
      HasSubstr("nests more than"));

  const uint64_t huge = uint64_t{1} << 60;
  write_file(path_, std::string(reinterpret_cast<const char*>(&huge), 8) + "{}");
  EXPECT_THAT(refusal(path_), HasSubstr("exceeds the file"));
  write_file(path_, "");
  EXPECT_THAT(refusal(path_), HasSubstr("empty file"));
  write_file(path_, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
  EXPECT_THAT(refusal(path_), HasSubstr("Git LFS pointer"));
  write_file(path_, "<!DOCTYPE html><html></html>");
  EXPECT_THAT(refusal(path_), HasSubstr("HTML"));
  EXPECT_THAT(refusal(folder_ / "none.safetensors"), HasSubstr("no such file"));
}

TEST_F(Safetensors, TensorsOutliveTheFileAndWritingToThemDoesNotReachIt) {
  write_safetensors(path_, {{"a", at::arange(4, at::kFloat)}});
  const TensorMap first = read_safetensors(path_);
  at::Tensor(first.at("a")).add_(1);
  EXPECT_TRUE(at::equal(read_safetensors(path_).at("a"), at::arange(4, at::kFloat)));
  write_safetensors(path_, {{"a", at::zeros({4})}});  // replaced, not overwritten
  EXPECT_TRUE(at::equal(first.at("a"), at::arange(1, 5, at::kFloat)));
  fs::remove(path_);
  EXPECT_TRUE(at::equal(first.at("a"), at::arange(1, 5, at::kFloat)));
}

TEST_F(Safetensors, TensorsAtOddAddressesAreRead) {
  for (const std::string& blanks : {"", " ", "  ", "   "}) {
    file_with(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})" + blanks, 8);
    const TensorMap read = read_safetensors(path_);
    const at::Tensor bytes = read.at("a").view(at::kByte);
    EXPECT_TRUE(at::equal(bytes, at::ones({8}, at::kByte))) << blanks.size();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(read.at("a").data_ptr()) % 4, 0u);
  }
}

}  // namespace
}  // namespace elf
