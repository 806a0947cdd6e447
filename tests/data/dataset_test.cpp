// HDF5 datasets: what is written comes back; field cases 44, 45 and 46.
#include "elf/data/dataset.h"

#include <fcntl.h>
#include <hdf5.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <thread>

#include "elf/base/files.h"
#include "support/errors.h"
#include "support/hdf5_attribute.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using test::set_attribute;
using test::TemporaryFolder;
using test::usage_message;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

DatasetInfo header(const std::string& kind, int64_t vocab_size) {
  DatasetInfo info;
  info.kind = kind;
  info.tokenizer_hash = "xxh128:aa";
  info.vocab_size = vocab_size;
  info.max_length = 64;
  info.max_input_length = kind == "pairs" ? 32 : 0;
  info.settings = "{}";
  return info;
}

Ids row_of(int64_t row, int64_t vocab_size) {
  Ids ids;
  for (int64_t i = 0; i <= row % 50; ++i)
    ids.push_back(static_cast<int32_t>((row * 7919 + i * 104729) % vocab_size));
  return ids;
}

fs::path write_documents(const fs::path& path, int64_t rows, int64_t vocab_size = 100) {
  DatasetWriter writer(path, header("documents", vocab_size));
  for (int64_t row = 0; row < rows; ++row) writer.add_document(row_of(row, vocab_size));
  writer.finish();
  return path;
}

// Replaces an attribute by `count` values of a type.
void set_values(const fs::path& path, const char* name, hid_t type, hsize_t count, const void* values) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Adelete(file, name);
  const hid_t space = H5Screate_simple(1, &count, nullptr),
              attribute = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  ASSERT_GE(H5Awrite(attribute, type, values), 0);
  H5Aclose(attribute);
  H5Sclose(space);
  H5Fclose(file);
}

// Replaces an array by one that holds nothing, of a type, size and layout.
void set_array(const fs::path& path, const char* name, hid_t type, hsize_t size, bool chunked) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Ldelete(file, name, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(1, &size, nullptr), layout = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t chunk = 16;
  if (chunked) H5Pset_chunk(layout, 1, &chunk);
  const hid_t array = H5Dcreate2(file, name, type, space, H5P_DEFAULT, layout, H5P_DEFAULT);
  ASSERT_GE(array, 0);
  H5Dclose(array);
  H5Pclose(layout);
  H5Sclose(space);
  H5Fclose(file);
}

TEST(Dataset, GivesDocumentsBack) {
  const TemporaryFolder folder;
  constexpr int64_t kRows = 30000;  // 765,000 tokens: several blocks, many chunks
  for (const int64_t vocab_size : {100, 65536, 100000}) {
    const fs::path path = write_documents(folder / "a.h5", kRows, vocab_size);
    for (const int64_t limit : {Dataset::kMemoryLimit, int64_t{0}}) {
      const Dataset data = Dataset::open(path, limit);
      ASSERT_EQ(data.info().rows, kRows);
      EXPECT_EQ(data.info().tokens, kRows * 51 / 2);
      EXPECT_EQ(data.info().longest_row, 50);
      EXPECT_EQ(data.info().vocab_size, vocab_size);
      EXPECT_EQ(data.cond_length(3), 0);
      EXPECT_EQ(data.target_text(3), "");
      for (int64_t row = 0; row < kRows; row += limit == 0 ? 997 : 1)
        ASSERT_EQ(data.tokens(row), row_of(row, vocab_size)) << row;
    }
  }
}

TEST(Dataset, GivesPairsBack) {
  const TemporaryFolder folder;
  const std::vector<std::string> sources = {"ja", "Größe\u2028 und mehr", "x"},
                                 targets = {"yes", "size\tand\nmore", "\u4eca"};
  DatasetWriter writer(folder / "p.h5", header("pairs", 100));
  for (int row = 0; row < 3; ++row) writer.add_pair({5, 6}, row_of(row, 100), sources[row], targets[row]);
  writer.finish();
  const Dataset data = Dataset::open(folder / "p.h5");
  EXPECT_TRUE(data.info().is_pairs());
  EXPECT_EQ(data.info().longest_condition, 2);
  EXPECT_EQ(data.info().max_input_length, 32);
  for (int row = 0; row < 3; ++row) {
    EXPECT_EQ(data.cond_length(row), 2);
    EXPECT_EQ(data.length(row), 3 + row);
    EXPECT_EQ(data.tokens(row)[1], 6);
    EXPECT_EQ(data.source_text(row), sources[row]);
    EXPECT_EQ(data.target_text(row), targets[row]);
  }
  EXPECT_THAT(usage_message([&] { data.tokens(3); }), HasSubstr("row 3 of 3"));
  EXPECT_THAT(usage_message([&] { data.source_text(-1); }), HasSubstr("row -1 of 3"));
}

TEST(Dataset, EqualContentGivesEqualBytes) {
  const TemporaryFolder folder;
  write_documents(folder / "a.h5", 500);
  write_documents(folder / "b.h5", 500);
  write_documents(folder / "c.h5", 501);
  EXPECT_EQ(read_file(folder / "a.h5"), read_file(folder / "b.h5"));
  EXPECT_EQ(Dataset::open(folder / "a.h5").info().data_hash, Dataset::open(folder / "b.h5").info().data_hash);
  EXPECT_NE(Dataset::open(folder / "a.h5").info().data_hash, Dataset::open(folder / "c.h5").info().data_hash);
}

TEST(Dataset, AppearsWholeOrNotAtAll) {
  const TemporaryFolder folder;
  {
    DatasetWriter writer(folder / "a.h5", header("documents", 100));
    for (int row = 0; row < 1000; ++row) writer.add_document(row_of(row, 100));
    writer.close();
    EXPECT_FALSE(fs::exists(folder / "a.h5"));
  }
  EXPECT_TRUE(fs::is_empty(folder.path()));
  DatasetWriter writer(folder / "b.h5", header("documents", 100));
  EXPECT_THAT(usage_message([&] { writer.add_document({1, 100}); }), HasSubstr("token 100"));
  EXPECT_THAT(usage_message([&] { writer.add_document(Ids(65, 1)); }), HasSubstr("65"));
}

TEST(Dataset, SaysWhatIsWrongWithAFile) {
  const TemporaryFolder folder;
  const fs::path path = folder / "data.h5";
  const auto message = [&] {
    const std::string text = usage_message([&] { Dataset::open(path); });
    EXPECT_THAT(text, HasSubstr(path.string()));
    return text;
  };
  EXPECT_THAT(message(), HasSubstr("no such file"));
  folder.write("data.h5", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  EXPECT_THAT(message(), HasSubstr("Git LFS pointer"));
  folder.write("data.h5", "<html></html>");
  EXPECT_THAT(message(), HasSubstr("HTML"));
  folder.write("data.h5", "");
  EXPECT_THAT(message(), HasSubstr("empty"));
  const std::string good = read_file(write_documents(folder / "good.h5", 2000));
  for (const size_t cut : {size_t{1}, size_t{100}, good.size() / 2, good.size() - 100}) {
    folder.write("data.h5", good.substr(0, good.size() - cut));
    EXPECT_THAT(message(), HasSubstr("cut short")) << cut;
  }
  std::string damaged = good;  // a bit of the tokens: the checksum of their chunk tells
  damaged[good.size() / 2] ^= 0x10;
  folder.write("data.h5", damaged);
  EXPECT_THAT(message(), HasSubstr("damaged"));
}

TEST(Dataset, SaysWhatItsAttributesLack) {
  const TemporaryFolder folder;
  const auto message = [&](const char* name, std::optional<int64_t> value) {
    const fs::path path = write_documents(folder / "data.h5", 100);
    set_attribute(path, name, value);
    return usage_message([&] { Dataset::open(path); });
  };
  EXPECT_THAT(message("complete", 0), HasSubstr("not complete"));
  EXPECT_THAT(message("complete", {}), HasSubstr("not complete"));
  EXPECT_THAT(message("rows", 101), AllOf(HasSubstr("101 rows"), HasSubstr("100")));
  EXPECT_THAT(message("rows", 99), AllOf(HasSubstr("99 rows"), HasSubstr("100")));
  EXPECT_THAT(message("tokens", 5), HasSubstr("5 tokens"));
  EXPECT_THAT(message("format_version", 2), HasSubstr("format 2"));
  EXPECT_THAT(message("format", {}), HasSubstr("not a dataset of elf-prepare"));
  EXPECT_THAT(message("vocab_size", {}), HasSubstr("'vocab_size'"));
  EXPECT_THAT(message("vocab_size", 90), HasSubstr("the vocabulary has 90"));
  EXPECT_THAT(message("max_length", 20), HasSubstr("expected 1 to 20"));
}

TEST(Dataset, RefusesAnotherTokenizer) {
  const TemporaryFolder folder;
  const Dataset data = Dataset::open(write_documents(folder / "a.h5", 10));
  data.require_tokenizer("xxh128:aa", 100);
  EXPECT_THAT(usage_message([&] { data.require_tokenizer("xxh128:bb", 100); }),
              AllOf(HasSubstr("xxh128:aa"), HasSubstr("xxh128:bb")));
  EXPECT_THAT(usage_message([&] { data.require_tokenizer("xxh128:aa", 101); }),
              AllOf(HasSubstr("100 ids"), HasSubstr("101 ids")));
}

TEST(Dataset, OpensReadOnlyAndLockedFiles) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "sub");
  const fs::path path = write_documents(folder / "sub/a.h5", 10);
  fs::permissions(path, fs::perms(0444));
  fs::permissions(folder / "sub", fs::perms(0555));
  for (const int kind : {LOCK_SH, LOCK_EX}) {
    const int descriptor = ::open(path.c_str(), O_RDONLY);
    ASSERT_EQ(::flock(descriptor, kind | LOCK_NB), 0);
    EXPECT_EQ(Dataset::open(path).info().rows, 10);
    ::close(descriptor);
  }
  fs::permissions(folder / "sub", fs::perms(0755));
}

// Four processes of four threads read all rows of one dataset, opened before the fork; equal sums everywhere.
TEST(Dataset, IsReadByProcessesAndThreads) {
  const TemporaryFolder folder;
  constexpr int64_t kRows = 2000;
  const fs::path path = write_documents(folder / "a.h5", kRows);
  for (const int64_t limit : {Dataset::kMemoryLimit, int64_t{0}}) {
    const Dataset data = Dataset::open(path, limit);
    const auto sum = [&](int64_t first, int64_t stride) {
      int64_t total = 0;
      for (int64_t row = first; row < kRows; row += stride) {
        for (const int32_t id : data.tokens(row)) total = (total * 31 + id) % 1000003;
      }
      return total;
    };
    const int64_t expected = sum(0, 1);
    std::vector<pid_t> children;
    for (int process = 0; process < 4; ++process) {
      const pid_t child = ::fork();
      if (child != 0) {
        children.push_back(child);
        continue;
      }
      std::vector<int> good(4, 0);
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) threads.emplace_back([&, t] { good[t] = sum(0, 1) == expected; });
      for (std::thread& thread : threads) thread.join();
      ::_exit(good == std::vector<int>(4, 1) ? 0 : 1);
    }
    for (const pid_t child : children) {
      int status = -1;
      ::waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
  }
}

// HDF5 holds more than elf-prepare writes: several values where one is read, arrays that claim what they do
// not have.
TEST(Dataset, RefusesWhatElfPrepareNeverWrites) {
  const TemporaryFolder folder;
  const auto message = [&](const auto& change) {
    const fs::path path = write_documents(folder / "a.h5", 100);
    change(path);
    return usage_message([&] { Dataset::open(path); });
  };
  const std::vector<int64_t> many(1000, 1);
  EXPECT_THAT(message([&](const fs::path& p) { set_values(p, "rows", H5T_NATIVE_INT64, 1000, many.data()); }),
              AllOf(HasSubstr("'rows'"), HasSubstr("no single value")));
  const hid_t text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, 8);
  EXPECT_THAT(message([&](const fs::path& p) { set_values(p, "format", text, 1000, many.data()); }),
              AllOf(HasSubstr("'format'"), HasSubstr("no single value")));
  H5Tclose(text);
  EXPECT_THAT(
      message([&](const fs::path& p) { set_array(p, "tokens", H5T_NATIVE_UINT16, hsize_t{1} << 40, true); }),
      AllOf(HasSubstr("'/tokens'"), HasSubstr("claims 1099511627776 elements")));
  EXPECT_THAT(message([&](const fs::path& p) { set_array(p, "offsets", H5T_NATIVE_UINT64, 101, false); }),
              AllOf(HasSubstr("'/offsets'"), HasSubstr("not chunked")));
  EXPECT_THAT(message([&](const fs::path& p) { set_array(p, "tokens", H5T_C_S1, 50, true); }),
              HasSubstr("hold numbers"));
  for (const int64_t rows : {INT64_MAX, INT64_MIN, int64_t{-1}}) {
    EXPECT_THAT(message([&](const fs::path& p) { set_attribute(p, "rows", rows); }),
                AllOf(HasSubstr(std::to_string(rows)), HasSubstr("damaged")));
  }
}

}  // namespace
}  // namespace elf
