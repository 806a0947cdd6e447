// TensorBoard's files byte by byte, against records that its own writer made, and across resumes.
#include "elf/train/event_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "elf/base/files.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;

// RFC 3720, B.4: CRC-32C of 32 bytes of zeros, of ones, and of 0 to 31.
TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  std::string counting;
  for (int i = 0; i < 32; ++i) counting += static_cast<char>(i);
  EXPECT_EQ(crc32c(counting), 0x46dd794eu);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
}

class Events : public ::testing::Test {
 protected:
  // The events of a file without their first nine bytes, the time.
  static std::vector<std::string> events(const fs::path& file) {
    const std::string bytes = read_file(file);
    std::vector<std::string> found;
    for (size_t at = 0; at < bytes.size();) {
      uint64_t length;
      uint32_t crc;
      std::memcpy(&length, bytes.data() + at, 8);
      std::memcpy(&crc, bytes.data() + at + 8, 4);
      EXPECT_EQ(crc, masked_crc32c(bytes.substr(at, 8)));
      const std::string event = bytes.substr(at + 12, length);
      std::memcpy(&crc, bytes.data() + at + 12 + length, 4);
      EXPECT_EQ(crc, masked_crc32c(event));
      found.push_back(event.substr(9));
      at += length + 16;
    }
    return found;
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator{}));
  }

  const test::TemporaryFolder scratch_;
  const fs::path folder_ = scratch_.path();
};

TEST_F(Events, FieldsAsProtobufWritesThem) {
  EventFile file(folder_, 0);
  file.scalar("a", 300, 1.5);
  file.text("t", 1, "hi");
  file.flush();
  const auto found = events(file.path());
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0], std::string("\x1a\x0d") + "brain.Event:2");
  // step 300; summary { value { tag "a", simple_value 1.5 } }
  EXPECT_EQ(found[1], std::string("\x10\xac\x02\x2a\x0a\x0a\x08\x0a\x01"
                                  "a\x15\x00\x00\xc0\x3f",
                                  15));
  // step 1; value { tag "t", tensor { dtype STRING, shape [1], "hi" }, metadata { plugin "text" } }
  EXPECT_EQ(found[2], std::string("\x10\x01\x2a\x1d\x0a\x1b\x0a\x01"
                                  "t\x42\x0c\x08\x07\x12\x04\x12\x02\x08\x01"
                                  "\x42\x02hi\x4a\x08\x0a\x06\x0a\x04text",
                                  33));
}

TEST_F(Events, ResumeKeepsEarlierStepsOnce) {
  fs::path first;
  {
    EventFile file(folder_, 0);
    for (const int64_t step : {5, 10, 15}) file.scalar("loss", step, 1);
    file.flush();
    first = file.path();
  }
  // The process was killed while it wrote.
  std::string bytes = read_file(first);
  write_file(first, bytes.substr(0, bytes.size() - 3));
  EventFile resumed(folder_, 10);
  for (const int64_t step : {15, 20}) resumed.scalar("loss", step, 2);
  resumed.flush();
  EXPECT_NE(resumed.path(), first);
  EXPECT_EQ(files(), 1u);
  std::vector<int> steps;
  for (const std::string& event : events(resumed.path())) {
    if (event[0] == '\x10') steps.push_back(event[1]);
  }
  EXPECT_EQ(steps, (std::vector<int>{5, 10, 15, 20}));
}

}  // namespace
}  // namespace elf
