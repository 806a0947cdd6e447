// Inputs and records of elf-sample.
#include "../../src/app/sample_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "elf/base/error.h"

namespace elf::app {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class SampleIo : public ::testing::Test {
 protected:
  SampleIo() : folder_(fs::temp_directory_path() / cat("elf-sample-io-", getpid())) {
    fs::create_directories(folder_);
  }
  ~SampleIo() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }

  std::string message(const std::string& path, const std::string& field = "") {
    try {
      read_sample_inputs(path, field);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return error.what();
    }
    return "no error";
  }

  fs::path folder_;
};

TEST_F(SampleIo, EveryLineIsAnInputEmptyOnesToo) {
  const SampleInputs read =
      read_sample_inputs(file("a.txt", "one\n\n three \xe2\x80\xa8 same line\r\nlast"), "");
  ASSERT_EQ(read.inputs.size(), 4u);
  EXPECT_EQ(read.inputs[1].text, "");
  EXPECT_EQ(read.inputs[2].text, " three \xe2\x80\xa8 same line");
  EXPECT_EQ(read.inputs[3].text, "last");
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(read.inputs[i].index, i);
  EXPECT_TRUE(read.inputs[0].id.is_null());
}

TEST_F(SampleIo, JsonlKeepsIdsAndIndices) {
  const std::string text = R"({"text": "a\nb", "id": "x7", "index": 4})"
                           "\n\n"
                           R"({"text": "", "other": 1})"
                           "\n";
  const SampleInputs read = read_sample_inputs(file("a.jsonl", text), "");
  ASSERT_EQ(read.inputs.size(), 2u);
  EXPECT_EQ(read.inputs[0].text, "a b");
  EXPECT_EQ(read.inputs[0].id, "x7");
  EXPECT_EQ(read.inputs[0].index, 4);
  EXPECT_EQ(read.inputs[1].index, 1);
  EXPECT_EQ(read.with_line_breaks, 1);
  EXPECT_EQ(read_sample_inputs(file("b.dat", R"({"de": "Haus"})"), "de").inputs[0].text, "Haus");
}

TEST_F(SampleIo, BadInputNamesFileAndLine) {
  EXPECT_THAT(message(file("a.jsonl", "{\"text\": \"a\"}\nnot json\n")),
              HasSubstr("a.jsonl:2: no JSON object"));
  EXPECT_THAT(message(file("b.jsonl", "{\"txt\": \"a\"}\n")), HasSubstr("b.jsonl:1: no text under 'text'"));
  EXPECT_THAT(message(file("c.jsonl", "{\"text\": \"a\", \"index\": -1}\n")), HasSubstr("index is -1"));
  EXPECT_THAT(message((folder_ / "none.txt").string()), HasSubstr("none.txt"));
}

TEST_F(SampleIo, RecordsStayLines) {
  SampleRecord record{3, "q1", "two\nlines", {5, 6}, 9, true, "in"};
  EXPECT_EQ(text_line(record), "two lines");
  EXPECT_EQ(jsonl_line(record),
            R"({"index":3,"id":"q1","text":"two\nlines","ids":[5,6],"seed":9,"condition":"in"})");
  record.id = nullptr;
  record.conditional = false;
  EXPECT_EQ(jsonl_line(record), R"({"index":3,"text":"two\nlines","ids":[5,6],"seed":9})");
  record.text = "\xff";  // a byte token alone
  EXPECT_NO_THROW(jsonl_line(record));
}

TEST_F(SampleIo, FilesAppearWhenFinished) {
  const fs::path path = folder_ / "new" / "out.txt";
  {
    LineWriter writer(path.string());
    writer.write("half");
    writer.flush();
    EXPECT_FALSE(fs::exists(path));
  }
  EXPECT_TRUE(fs::is_empty(folder_ / "new"));
  LineWriter writer(path.string());
  writer.write("one");
  writer.write("");
  writer.finish();
  EXPECT_EQ(read_file(path), "one\n\n");
}

}  // namespace
}  // namespace elf::app
