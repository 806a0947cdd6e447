// Files are written whole or not at all; digests and first bytes tell what a file is.
#include "elf/base/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "elf/base/atomic_folder.h"
#include "elf/base/error.h"
#include "elf/base/outputs.h"
#include "support/c_library.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Files : public ::testing::Test {
 protected:
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_))
      found.push_back(entry.path().filename().string());
    return found;
  }

  const test::TemporaryFolder scratch_;
  const fs::path folder_ = scratch_.path();
};

TEST_F(Files, WithoutCommitNothingIsLeft) {
  {
    AtomicFile file(folder_ / "a.txt");
    std::ofstream(file.temporary()) << "half";
    EXPECT_EQ(names().size(), 1u);
    EXPECT_FALSE(fs::exists(folder_ / "a.txt"));
  }
  EXPECT_TRUE(names().empty());
}

TEST_F(Files, WithoutCommitTheOldFileStays) {
  write_file(folder_ / "a.txt", "old");
  try {
    AtomicFile file(folder_ / "a.txt");
    std::ofstream(file.temporary()) << "half of the n";
    throw std::runtime_error("in between");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(read_file(folder_ / "a.txt"), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"a.txt"});
}

TEST_F(Files, CommitPutsTheWholeContentInPlace) {
  const std::string content("line\n\0\xff tail", 13);
  write_file(folder_ / "a.bin", "something longer that must not show through");
  {
    AtomicFile file(folder_ / "a.bin");
    std::ofstream(file.temporary(), std::ios::binary) << content;
    file.commit();
  }
  EXPECT_EQ(read_file(folder_ / "a.bin"), content);
  EXPECT_EQ(names(), std::vector<std::string>{"a.bin"});
}

TEST_F(Files, WriteFileKeepsEveryByte) {
  std::string content(3'000'000, '\0');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 31 >> 3);
  write_file(folder_ / "big", content);
  EXPECT_EQ(read_file(folder_ / "big"), content);
  write_file(folder_ / "big", "");
  EXPECT_EQ(read_file(folder_ / "big"), "");
  EXPECT_EQ(names(), std::vector<std::string>{"big"});
}

// The kind and the words of what `body` throws.
template <class Body>
void expect_error(ErrorKind kind, const std::string& words, Body body) {
  try {
    body();
    ADD_FAILURE() << "nothing was thrown; expected: " << words;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_THAT(e.what(), HasSubstr(words));
  }
}

TEST_F(Files, ErrorsNameThePath) {
  const std::string none = (folder_ / "none").string();
  expect_error(ErrorKind::kUsage, none + ": no such file", [&] { read_file(none); });
  expect_error(ErrorKind::kUsage, folder_.string() + ": is a folder", [&] { read_file(folder_); });
  expect_error(ErrorKind::kUsage, "/dev/zero: is a device", [&] { read_file("/dev/zero"); });  // never ends
  expect_error(ErrorKind::kUsage, none, [&] { digest_of_file(none); });
  const fs::path below = folder_ / "no" / "such" / "folder.txt";
  expect_error(ErrorKind::kUsage, below.string(), [&] { write_file(below, "x"); });  // no such folder
  write_file(folder_ / "file", "x");
  const fs::path in_file = folder_ / "file" / "x";
  expect_error(ErrorKind::kUsage, "is no folder", [&] { write_file(in_file, "x"); });
  expect_error(ErrorKind::kUsage, in_file.string(), [&] { make_folder(in_file / "y"); });
  expect_error(ErrorKind::kUsage, (folder_ / "file").string(), [&] { make_folder(folder_ / "file"); });
  expect_error(ErrorKind::kUsage, "x/y", [&] { AtomicFolder(in_file / "y"); });
  expect_error(ErrorKind::kUsage, "empty", [&] { write_file("", "x"); });
  expect_error(ErrorKind::kUsage, std::string(300, 'n'),
               [&] { write_file(folder_ / std::string(300, 'n'), "x"); });
  EXPECT_NO_THROW(make_folder(folder_ / "a" / "b"));
  EXPECT_NO_THROW(make_folder(folder_ / "a" / "b"));
  expect_error(ErrorKind::kEnvironment, none, [&] { sync_to_disk(none); });
}

TEST_F(Files, AnErrorOfTheCloseIsSeen) {
  write_file(folder_ / "a.txt", "old");
  {
    const test::WhileCallsAsk failing(
        [](const std::string& call, const std::string&) { return call == "fclose" ? ENOSPC : 0; });
    expect_error(ErrorKind::kEnvironment, "a.txt: writing failed: No space left on device",
                 [&] { write_file(folder_ / "a.txt", "new"); });
  }
  EXPECT_EQ(read_file(folder_ / "a.txt"), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"a.txt"});
}

// A folder with one file that says `content`, over whatever is at `path`.
void make_over(const fs::path& path, const std::string& content) {
  AtomicFolder folder(path, true);
  write_file(folder.temporary() / "file", content);
  folder.commit();
}

TEST_F(Files, AFolderIsReplacedInOneStep) {
  make_over(folder_ / "f", "old");
  int renames = 0;
  {
    const test::WhileCallsAsk watching([&](const std::string& call, const std::string& path) {
      if (call.starts_with("rename") && path == folder_ / "f") ++renames;
      EXPECT_TRUE(fs::exists(folder_ / "f" / "file")) << call << " " << path;
      return 0;
    });
    make_over(folder_ / "f", "new");
  }
  EXPECT_EQ(renames, 1);
  EXPECT_EQ(read_file(folder_ / "f" / "file"), "new");
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
}

// Network file systems mostly cannot exchange names: the old folder steps aside, and back when it must.
TEST_F(Files, AFolderThatCannotBeReplacedStays) {
  make_over(folder_ / "f", "old");
  int allowed = 0;  // renames to the final name
  const auto without_exchange = [&](const std::string& call, const std::string& path) {
    if (call == "renameat2") return EINVAL;
    return call == "rename" && path == folder_ / "f" && allowed-- == 0 ? EIO : 0;
  };
  {
    const test::WhileCallsAsk failing(without_exchange);
    expect_error(ErrorKind::kEnvironment, "f: cannot be put in place",
                 [&] { make_over(folder_ / "f", "new"); });
  }
  EXPECT_EQ(read_file(folder_ / "f" / "file"), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
  allowed = 1;
  {
    const test::WhileCallsAsk failing(without_exchange);
    make_over(folder_ / "f", "new");
  }
  EXPECT_EQ(read_file(folder_ / "f" / "file"), "new");
  EXPECT_EQ(names(), std::vector<std::string>{"f"});
}

TEST_F(Files, AFolderThatLostItsNameIsNamed) {
  make_over(folder_ / "f", "old");
  const std::string aside = cat(".f.", ::getpid(), ".old");
  {
    const test::WhileCallsAsk failing([&](const std::string& call, const std::string& path) {
      return call == "renameat2" || (call == "rename" && path == folder_ / "f") ? EIO : 0;
    });
    expect_error(ErrorKind::kEnvironment, "what was there is now " + (folder_ / aside).string(),
                 [&] { make_over(folder_ / "f", "new"); });
  }
  EXPECT_EQ(names(), std::vector<std::string>{aside});
  EXPECT_EQ(read_file(folder_ / aside / "file"), "old");
}

TEST_F(Files, AnOutputIsNoInputNothingAboveOneAndNoPartOfOne) {
  for (const char* file :
       {"runs/a/config.yaml", "runs/a/checkpoints/step-1/ema.safetensors", "runs/a/texts.jsonl"}) {
    make_folder((folder_ / file).parent_path());
    write_file(folder_ / file, "x");
  }
  const std::string run = folder_ / "runs/a";
  const auto refused = [&](const std::string& output, const std::string& part) {
    expect_error(ErrorKind::kUsage, part, [&] { refuse_overwriting(folder_ / output, {"", "-", run}); });
  };
  refused("runs/a", "is an input as well");
  refused("runs/../runs/./a/", "is an input as well");
  refused("runs", "holds an input");
  refused("runs/a/config.yaml", "is a part of an input");
  refused("runs/a/checkpoints/step-1/ema.safetensors", "is a part of an input");
  for (const char* output : {"runs/a/texts.jsonl", "runs/a/new.safetensors", "runs/ab", "runs/b/config.yaml"})
    EXPECT_NO_THROW(refuse_overwriting(folder_ / output, {run})) << output;
}

TEST_F(Files, WhatAFolderReplacedIsKnownByItsName) {
  make_over(folder_ / "f", "new");
  for (const char* name : {".f.17.old"}) EXPECT_TRUE(is_replaced_folder(folder_ / name)) << name;
  for (const char* name : {".f.mine.old", ".f..old", ".f.old", "..17.old", ".17.old", ".old", "..old", "f",
                           "f.17.old", ".g.17.old", ".f.17.tmp"})
    EXPECT_FALSE(is_replaced_folder(folder_ / name)) << name;
}

TEST_F(Files, AFolderHoldsOnlyTheseNames) {
  EXPECT_FALSE(holds_only(folder_ / "absent", {"a"}));
  fs::create_directories(folder_ / "f" / "inner");
  EXPECT_TRUE(holds_only(folder_ / "f", {"inner", "b"}));
  write_file(folder_ / "f" / "other", "x");
  EXPECT_FALSE(holds_only(folder_ / "f", {"inner", "b"}));
}

TEST_F(Files, TheNameOfAFolderIsNotReplaced) {
  fs::create_directories(folder_ / "taken" / "inside");
  expect_error(ErrorKind::kUsage, "taken", [&] { write_file(folder_ / "taken", "x"); });
  EXPECT_EQ(names(), std::vector<std::string>{"taken"});
}

// Values of the published XXH3-128 test programs and of xxhsum -H2.
TEST_F(Files, Digests) {
  EXPECT_EQ(digest(""), "xxh128:99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(digest("a"), "xxh128:a96faf705af16834e6c632b61e964e1f");
  EXPECT_NE(digest("ab"), digest("ba"));
  std::string content(2'500'000, 'x');  // more than one piece of the reader
  content[1'100'000] = 'y';
  write_file(folder_ / "f", content);
  EXPECT_EQ(digest_of_file(folder_ / "f"), digest(content));
  content[1'100'000] = 'z';
  EXPECT_NE(digest_of_file(folder_ / "f"), digest(content));
}

TEST(WhatBytesLookLike, NamesWhatIsFoundInPlaceOfData) {
  EXPECT_THAT(what_bytes_look_like("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
              HasSubstr("Git LFS pointer"));
  EXPECT_THAT(what_bytes_look_like("<!DOCTYPE html><html>"), HasSubstr("HTML"));
  EXPECT_THAT(what_bytes_look_like("\n  <html lang=\"en\">"), HasSubstr("HTML"));
  EXPECT_THAT(what_bytes_look_like("\x1f\x8b\x08"), HasSubstr("gzip"));
  EXPECT_THAT(what_bytes_look_like(""), HasSubstr("empty"));
  EXPECT_EQ(what_bytes_look_like("model:\n  depth: 3\n"), "");
  EXPECT_EQ(what_bytes_look_like(std::string_view("\x80\x02}q\0", 5)), "");
}

TEST(ErrorKinds, MapToExitCodes) {
  EXPECT_EQ(Error(ErrorKind::kUsage, "").exit_code(), 2);
  EXPECT_EQ(Error(ErrorKind::kNumerical, "").exit_code(), 3);
  EXPECT_EQ(Error(ErrorKind::kEnvironment, "").exit_code(), 1);
  expect_error(ErrorKind::kNumerical, "step 3: nan", [] { numerical_error("step ", 3, ": ", "nan"); });
}

}  // namespace
}  // namespace elf
