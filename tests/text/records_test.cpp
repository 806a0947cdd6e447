// The one reader of user text: field cases 48, 51 and 52 as far as reading goes.
#include "elf/text/records.h"

#include <zlib.h>

#include "support/errors.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

using namespace std::string_literals;
using test::TemporaryFolder;
using test::usage_message;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Texts = std::vector<std::string>;

Texts read(const RecordSource& source) {
  return read_records(source);
}

std::string gzip(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

TEST(Records, EndAtLineFeedOnly) {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.txt", "one\r\ntwo\u2028still\u0085\v\f two\n\n\rfour\r\r\nlast");
  EXPECT_THAT(read({.files = {file}}),
              ElementsAre("one", "two\u2028still\u0085\v\f two", "", "\rfour\r", "last"));
  EXPECT_THAT(read({.files = {folder.write("empty.txt", "")}}), ElementsAre());
  EXPECT_THAT(read({.files = {folder.write("line.txt", "\n")}}), ElementsAre(""));
}

TEST(Records, ReadSeveralFilesPlainAndGzip) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "line " + std::to_string(i) + "\n";
  const std::string plain = folder.write("a.txt", text), packed = folder.write("a.txt.gz", gzip(text));
  const Texts texts = read({.files = {plain, packed}});
  ASSERT_EQ(texts.size(), 200000u);
  EXPECT_EQ(texts[99999], "line 99999");
  EXPECT_EQ(texts[100000], "line 0");
  const std::string cut = folder.write("cut.gz", gzip(text).substr(0, 1000));
  EXPECT_THAT(usage_message([&] { read({.files = {cut}}); }), AllOf(HasSubstr(cut), HasSubstr("cut short")));
}

TEST(Records, NamesWithStarsStandForFiles) {
  const TemporaryFolder folder;
  const std::string b = folder.write("part-b.txt", "b\n"), a = folder.write("part-a.txt", "a\n"),
                    odd = folder.write("odd[1].txt", "odd\n");
  EXPECT_THAT(expand_files({(folder / "part-*.txt").string(), odd, "-"}), ElementsAre(a, b, odd, "-"));
  EXPECT_THAT(usage_message([&] { expand_files({(folder / "none*.txt").string()}); }),
              AllOf(HasSubstr("none*.txt"), HasSubstr("no file matches")));
}

TEST(Records, TakeColumnsOfATable) {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.tsv", "1\tja\t2\tyes\n3\tnein\t4\tno\n");
  RecordReader reader({.files = {file}, .format = RecordFormat::kTsv, .columns = 0, .take = {3, 1}});
  Record record;
  ASSERT_TRUE(reader.next(record));
  EXPECT_THAT(record.columns, ElementsAre("yes", "ja"));
  EXPECT_THAT(usage_message(
                  [&] { read({.files = {file}, .format = RecordFormat::kTsv, .columns = 0, .take = {4}}); }),
              AllOf(HasSubstr("a.tsv:1"), HasSubstr("column 5")));
  const std::string uneven = folder.write("b.tsv", "a\tb\tc\nd\te\n");
  EXPECT_THAT(usage_message([&] {
                read({.files = {uneven}, .format = RecordFormat::kTsv, .columns = 0, .take = {0}});
              }),
              AllOf(HasSubstr("b.tsv:2"), HasSubstr("2 tab-separated columns, expected 3, as in line 1")));
}

TEST(Records, LeaveOutAByteOrderMark) {
  const TemporaryFolder folder;
  const std::string three = "{\"text\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n";
  const std::string with = folder.write("bom.jsonl", "\xEF\xBB\xBF" + three),
                    without = folder.write("plain.jsonl", three);
  EXPECT_EQ(read({.files = {with}}), read({.files = {without}}));
  EXPECT_THAT(read({.files = {with}}), ElementsAre("a", "b", "c"));
  for (const std::string& mark : {"\xFF\xFE"s, "\xFE\xFF"s}) {
    const std::string file = folder.write("utf16.txt", mark + "a\0b\0"s);
    EXPECT_THAT(usage_message([&] { read({.files = {file}}); }), AllOf(HasSubstr(file), HasSubstr("UTF-16")));
  }
}

TEST(Records, NameBadBytes) {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.txt", "fine\ncat \xFF sat\n");
  EXPECT_THAT(
      usage_message([&] { read({.files = {file}}); }),
      AllOf(HasSubstr(file + ":2"), HasSubstr("0xFF"), HasSubstr("byte 4"), HasSubstr("byte 9 of the file")));
  const std::string nul = folder.write("nul.txt", "\0"s);
  EXPECT_THAT(usage_message([&] { read({.files = {nul}}); }), AllOf(HasSubstr(nul + ":1"), HasSubstr("NUL")));
  const std::string escaped = folder.write("nul.jsonl", R"({"text": "a\u0000"})");
  EXPECT_THAT(usage_message([&] { read({.files = {escaped}}); }),
              AllOf(HasSubstr("NUL"), HasSubstr("'text'")));
}

TEST(Records, ReplaceOrDropBadBytesAndCount) {
  const TemporaryFolder folder;
  const std::string file = folder.write("a.txt", "one\ncat \xFF sat\n\0\nlone \xED\xB2\x80\nend\n"s);
  RecordReader replacing({.files = {file}, .bad_text = BadText::kReplace});
  Texts texts;
  for (Record record; replacing.next(record);) texts.push_back(record.columns[0]);
  EXPECT_THAT(texts, ElementsAre("one", "cat \uFFFD sat", "\uFFFD", "lone \uFFFD\uFFFD\uFFFD", "end"));
  EXPECT_EQ(replacing.replaced(), 3);

  RecordReader dropping({.files = {file}, .bad_text = BadText::kDrop});
  std::vector<int64_t> bad_lines;
  for (Record record; dropping.next(record);) {
    if (record.bad) bad_lines.push_back(record.line);
  }
  EXPECT_THAT(bad_lines, ElementsAre(2, 3, 4));
  EXPECT_EQ(dropping.bad(), 3);
  EXPECT_THAT(read({.files = {file}, .bad_text = BadText::kDrop}), ElementsAre("one", "end"));
}

TEST(Records, ReadJsonFields) {
  const TemporaryFolder folder;
  const std::string file = folder.write(
      "a.jsonl",
      "{\"de\": \"ja\", \"t\": {\"en\": \"yes\\nso\"}}\n\n{\"t\": {\"en\": \"no\"}, \"de\": \"nein\"}\n");
  RecordReader reader({.files = {file}, .fields = {"de", "t.en"}});
  Record record;
  ASSERT_TRUE(reader.next(record));
  EXPECT_THAT(record.columns, ElementsAre("ja", "yes\nso"));
  ASSERT_TRUE(reader.next(record));
  EXPECT_THAT(record.columns, ElementsAre("nein", "no"));
  EXPECT_EQ(record.line, 3);
  EXPECT_FALSE(reader.next(record));

  const auto message = [&](const std::string& line) {
    const std::string bad = folder.write("bad.jsonl", "{\"de\": \"x\"}\n" + line + "\n");
    const std::string text = usage_message([&] { read({.files = {bad}, .fields = {"de"}}); });
    EXPECT_THAT(text, HasSubstr(bad + ":2"));
    return text;
  };
  EXPECT_THAT(message("{\"de\": "), HasSubstr("no JSON"));
  EXPECT_THAT(message("[1]"), HasSubstr("array"));
  EXPECT_THAT(message("{\"en\": \"x\"}"), AllOf(HasSubstr("'de'"), HasSubstr("en")));
  EXPECT_THAT(message("{\"de\": 3}"), HasSubstr("number"));
}

TEST(Records, RefuseWrongColumnCounts) {
  const TemporaryFolder folder;
  const std::string good = folder.write("good.tsv", "a\tb\n\tc\n");
  RecordReader reader({.files = {good}, .format = RecordFormat::kTsv, .columns = 2});
  Record record;
  ASSERT_TRUE(reader.next(record));
  ASSERT_TRUE(reader.next(record));
  EXPECT_THAT(record.columns, ElementsAre("", "c"));
  for (const std::string line : {"one", "one\ttwo\tthree", ""}) {
    const std::string bad = folder.write("bad.tsv", "a\tb\n" + line + "\n");
    EXPECT_THAT(usage_message([&] { read({.files = {bad}, .format = RecordFormat::kTsv, .columns = 2}); }),
                AllOf(HasSubstr(bad + ":2"), HasSubstr("expected 2")));
  }
}

TEST(Records, RefuseMissingFilesAndPointers) {
  const TemporaryFolder folder;
  EXPECT_THAT(usage_message([&] { read({.files = {(folder / "none").string()}}); }),
              HasSubstr("no such file"));
  EXPECT_THAT(usage_message([&] { read({.files = {folder.path().string()}}); }), HasSubstr("folder"));
  const std::string pointer = folder.write("p.txt", "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_THAT(usage_message([&] { read({.files = {pointer}}); }), HasSubstr("Git LFS pointer"));
  EXPECT_THAT(usage_message([&] { read({}); }), HasSubstr("no input file"));
}

}  // namespace
}  // namespace elf
