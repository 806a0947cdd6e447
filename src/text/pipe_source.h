// Bytes of standard input as they come: what a pipe holds is handed on at once, where zlib's own reader would
// wait for a full buffer.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <vector>

namespace elf::text {

class PipeSource {
 public:
  PipeSource() = default;
  ~PipeSource();
  PipeSource(const PipeSource&) = delete;
  PipeSource& operator=(const PipeSource&) = delete;

  // At least one byte of the text, unpacked where it is gzip, as soon as there is one; 0 at the end. Throws
  // Error (usage) for damaged or cut gzip data, (environment) when reading fails.
  size_t read(char* buffer, size_t size);
  int64_t bytes_read() const { return bytes_read_; }  // packed

 private:
  bool fill();  // false at the end
  void look_at_start();
  size_t unpack(char* buffer, size_t size);

  std::vector<unsigned char> raw_ = std::vector<unsigned char>(size_t{1} << 16);
  size_t begin_ = 0, end_ = 0;  // unread part
  int64_t bytes_read_ = 0;
  bool started_ = false, packed_ = false, member_open_ = false;
  z_stream stream_{};
};

}  // namespace elf::text
