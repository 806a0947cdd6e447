// TensorBoard's event file: records of TFRecord framing (length, masked CRC-32C, Event message), written
// field by field as protobuf lays them out on the wire.
//   Event:   1 wall_time (double), 2 step (int64), 3 file_version (string), 5 summary
//   Summary: 1 value; Value: 1 tag, 2 simple_value (float), 8 tensor, 9 metadata
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace elf {

class EventFile {
 public:
  // A new file in `folder`. What the files there hold of steps up to `resume_step` moves into it, what lies
  // beyond is dropped (it was written after the checkpoint that is resumed from), and those files go.
  EventFile(const std::filesystem::path& folder, int64_t resume_step);

  void scalar(const std::string& tag, int64_t step, double value);
  void text(const std::string& tag, int64_t step, const std::string& markdown);
  // Until this call records wait in memory. Throws Error (environment).
  void flush();

  const std::filesystem::path& path() const { return path_; }

 private:
  void add(const std::string& event);

  std::filesystem::path path_;
  std::string pending_;
};

// CRC-32C (Castagnoli), and as TFRecord stores it: rotated and offset.
uint32_t crc32c(const std::string& bytes);
uint32_t masked_crc32c(const std::string& bytes);

}  // namespace elf
