#include "line_reader.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"

namespace elf::text {
namespace {

constexpr size_t kBufferSize = size_t{1} << 18;
constexpr size_t kLongestLine = size_t{1} << 30;  // beyond it the file is no text of records

gzFile open_file(const std::string& path) {
  if (!std::filesystem::exists(path)) usage_error(path, ": no such file");
  if (std::filesystem::is_directory(path)) usage_error(path, ": is a folder, expected a text file");
  return gzopen(path.c_str(), "rb");
}

}  // namespace

LineReader::LineReader(const std::string& path)
    : path_(path == "-" ? "standard input" : path), buffer_(kBufferSize) {
  if (path == "-") {
    pipe_ = std::make_unique<PipeSource>();
  } else {
    file_.reset(open_file(path));
    if (!file_) environment_error(path_, ": cannot be read: ", std::strerror(errno));
    gzbuffer(file_.get(), kBufferSize);
  }
  check_start();
}

bool LineReader::fill() {
  if (pipe_) {
    begin_ = 0;
    end_ = pipe_->read(buffer_.data(), buffer_.size());
    return end_ > 0;
  }
  const int count = gzread(file_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size()));
  int code = Z_OK;
  const char* message = gzerror(file_.get(), &code);
  if (code == Z_BUF_ERROR) usage_error(path_, ": the gzip data are cut short");
  if (code == Z_DATA_ERROR) usage_error(path_, ": damaged gzip data: ", message);
  if (count < 0) environment_error(path_, ": reading failed: ", message);
  begin_ = 0;
  end_ = static_cast<size_t>(count);
  return count > 0;
}

void LineReader::check_start() {
  if (!fill()) return;
  const std::string_view start(buffer_.data(), end_);
  if (start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF")) {
    usage_error(path_, ": is UTF-16, expected UTF-8; convert it: iconv -f UTF-16 -t UTF-8");
  }
  if (start.starts_with("version https://git-lfs"))
    usage_error(path_, ": is ", what_bytes_look_like(start.substr(0, 256)));
  if (start.starts_with("\xEF\xBB\xBF")) {
    log_info(cat(path_, ": byte order mark at the start left out"));
    begin_ = 3;
    next_offset_ = 3;
  }
}

bool LineReader::next(std::string& line) {
  line.clear();
  offset_ = next_offset_;
  bool any = false;
  while (begin_ < end_ || fill()) {
    any = true;
    const char* start = buffer_.data() + begin_;
    const auto* stop = static_cast<const char*>(std::memchr(start, '\n', end_ - begin_));
    const size_t count = stop ? static_cast<size_t>(stop - start) : end_ - begin_;
    line.append(start, count);
    begin_ += count + (stop ? 1 : 0);
    next_offset_ += static_cast<int64_t>(count) + (stop ? 1 : 0);
    if (stop) break;
    if (line.size() > kLongestLine)
      usage_error(path_, ": a line of more than 1 GiB from byte ", offset_,
                  " on; expected one record a line");
  }
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return any;
}

int64_t LineReader::bytes_read() const {
  return pipe_ ? pipe_->bytes_read() : std::max<int64_t>(0, gzoffset(file_.get()));
}

}  // namespace elf::text
