#include "pipe_source.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "elf/base/error.h"

namespace elf::text {

PipeSource::~PipeSource() {
  if (packed_) inflateEnd(&stream_);
}

bool PipeSource::fill() {
  if (begin_ == end_) begin_ = end_ = 0;
  ssize_t count;
  do {
    count = ::read(STDIN_FILENO, raw_.data() + end_, raw_.size() - end_);
  } while (count < 0 && errno == EINTR);
  if (count < 0) environment_error("standard input: reading failed: ", std::strerror(errno));
  end_ += static_cast<size_t>(count);
  bytes_read_ += count;
  return count > 0;
}

// gzip starts with 1F 8B.
void PipeSource::look_at_start() {
  started_ = true;
  while (end_ - begin_ < 2 && (end_ == begin_ || raw_[begin_] == 0x1F) && fill()) {
  }
  packed_ = end_ - begin_ >= 2 && raw_[begin_] == 0x1F && raw_[begin_ + 1] == 0x8B;
  if (packed_ && inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK)
    environment_error("standard input: zlib cannot start");
  member_open_ = packed_;
}

size_t PipeSource::read(char* buffer, size_t size) {
  if (!started_) look_at_start();
  if (packed_) return unpack(buffer, size);
  if (begin_ == end_ && !fill()) return 0;
  const size_t count = std::min(size, end_ - begin_);
  std::memcpy(buffer, raw_.data() + begin_, count);
  begin_ += count;
  return count;
}

size_t PipeSource::unpack(char* buffer, size_t size) {
  stream_.next_out = reinterpret_cast<Bytef*>(buffer);
  stream_.avail_out = static_cast<uInt>(size);
  while (stream_.avail_out == size) {
    if (begin_ == end_ && !fill()) {
      if (member_open_) usage_error("standard input: the gzip data are cut short");
      return 0;
    }
    if (!member_open_) {  // another member behind the one that ended
      inflateReset(&stream_);
      member_open_ = true;
    }
    stream_.next_in = raw_.data() + begin_;
    stream_.avail_in = static_cast<uInt>(end_ - begin_);
    const int code = inflate(&stream_, Z_NO_FLUSH);
    begin_ = end_ - stream_.avail_in;
    if (code == Z_STREAM_END) {
      member_open_ = false;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      usage_error("standard input: damaged gzip data: ", stream_.msg ? stream_.msg : "unknown reason");
    }
  }
  return size - stream_.avail_out;
}

}  // namespace elf::text
