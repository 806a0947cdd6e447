// Lines of one text file, plain or gzip-compressed, with flat memory.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pipe_source.h"

namespace elf::text {

class LineReader {
 public:
  // "-" = standard input. Throws Error (usage): missing file, folder, UTF-16, Git LFS pointer.
  explicit LineReader(const std::string& path);

  // The next line without LF and one CR; false at the end. `offset()` is then the offset of its first byte in
  // the (unpacked) file.
  bool next(std::string& line);
  int64_t offset() const { return offset_; }
  int64_t bytes_read() const;  // of the (compressed) file

 private:
  struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  bool fill();
  void check_start();

  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;  // or, of standard input:
  std::unique_ptr<PipeSource> pipe_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // unread part of the buffer
  int64_t offset_ = 0, next_offset_ = 0;
};

}  // namespace elf::text
