// Inputs and records of elf-sample, and files that can be gone on with.
#include "../../src/app/sample_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "../../src/app/resumable_writer.h"
#include "elf/base/error.h"
#include "support/temporary_folder.h"

namespace elf::app {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class SampleIo : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }

  struct Read {
    std::vector<SampleInput> inputs;
    int64_t with_line_breaks;
  };
  static Read read_sample_inputs(const std::string& path, const std::string& field, int64_t most = 1000) {
    SampleInputReader reader(path, field, most);
    Read read;
    for (SampleInput input; reader.next(input);) read.inputs.push_back(input);
    read.with_line_breaks = reader.with_line_breaks();
    return read;
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

  const test::TemporaryFolder scratch_;
  const fs::path folder_ = scratch_.path();
};

TEST_F(SampleIo, EveryLineIsAnInputEmptyOnesToo) {
  const Read read = read_sample_inputs(file("a.txt", "one\n\n three \xe2\x80\xa8 same line\r\nlast"), "");
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
  const Read read = read_sample_inputs(file("a.jsonl", text), "");
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
  EXPECT_THAT(message(file("d.jsonl", "{\"text\": \"a\", \"index\": 18446744073709551615}\n")),
              HasSubstr("d.jsonl:1: index is 18446744073709551615"));
  EXPECT_THAT(message(file("e.jsonl", "{\"text\": \"a\", \"index\": 1000}\n")), HasSubstr("0 to 999"));
  EXPECT_THAT(message((folder_ / "none.txt").string()), HasSubstr("none.txt"));
}

TEST_F(SampleIo, RecordsStayLines) {
  SampleRecord record{3, "q1", "two\nlines", {5, 6}, 9, true, "in", {}};
  EXPECT_EQ(text_line(record), "two lines");
  EXPECT_EQ(jsonl_line(record),
            R"({"index":3,"id":"q1","text":"two\nlines","ids":[5,6],"seed":9,"condition":"in"})");
  record.id = nullptr;
  record.conditional = false;
  EXPECT_EQ(jsonl_line(record), R"({"index":3,"text":"two\nlines","ids":[5,6],"seed":9})");
  record.more = {{"fills", {"x"}}};
  EXPECT_THAT(jsonl_line(record), HasSubstr(R"("seed":9,"fills":["x"]})"));
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

class Resumable : public SampleIo {
 protected:
  static nlohmann::ordered_json settings(int seed) { return {{"seed", seed}}; }
  std::string path() const { return (folder_ / "out.jsonl").string(); }
  std::string partial() const { return path() + ".partial"; }
};

TEST_F(Resumable, GoesOnFromWholeRecords) {
  {
    ResumableWriter writer(path(), settings(1), false);
    writer.write(R"({"index":0})");
    writer.write(R"({"index":1})");
    writer.flush();
  }
  EXPECT_FALSE(fs::exists(path()));
  std::ofstream(partial(), std::ios::app) << R"({"index":2,"te)";  // killed in the middle of a line
  {
    ResumableWriter writer(path(), settings(1), true);
    EXPECT_EQ(writer.kept().size(), 2u);
    writer.write(R"({"index":2})");
    writer.finish();
  }
  EXPECT_EQ(read_file(path()), "{\"index\":0}\n{\"index\":1}\n{\"index\":2}\n");
  EXPECT_FALSE(fs::exists(partial()) || fs::exists(partial() + ".json"));
}

TEST_F(Resumable, OtherSettingsAreRefusedAndNothingIsLost) {
  {
    ResumableWriter writer(path(), settings(1), false);
    writer.write(R"({"index":0})");
    writer.flush();
  }
  try {
    ResumableWriter writer(path(), settings(2), true);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("was made with seed 1, now it is 2"));
  }
  EXPECT_EQ(ResumableWriter(path(), settings(1), true).kept().size(), 1u);
}

TEST_F(Resumable, AFinishedOrForeignFileIsTakenOver) {
  file("out.jsonl", "{\"index\":0}\n");  // by a shell's redirection: nothing says what it was made with
  {
    ResumableWriter writer(path(), settings(1), true);
    ASSERT_EQ(writer.kept().size(), 1u);
    writer.keep(0);
    writer.write(R"({"index":5})");
    writer.finish();
  }
  EXPECT_EQ(read_file(path()), "{\"index\":5}\n");
}

TEST_F(Resumable, NothingWrittenLeavesNothing) {
  { const ResumableWriter writer(path(), settings(1), false); }
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace elf::app
