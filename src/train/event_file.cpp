#include "elf/train/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "elf/base/error.h"
#include "elf/base/files.h"

namespace elf {
namespace fs = std::filesystem;
namespace {

constexpr const char* kPrefix = "events.out.tfevents.";
constexpr uint64_t kStepField = 2;
enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

template <class T>
std::string little_endian(T value) {  // as this project's machines store it
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key(uint64_t field, WireType type) {
  return varint(field << 3 | type);
}
std::string bytes_field(uint64_t field, const std::string& bytes) {
  return key(field, kBytes) + varint(bytes.size()) + bytes;
}
std::string integer_field(uint64_t field, int64_t value) {
  return key(field, kVarint) + varint(static_cast<uint64_t>(value));
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string event_at(int64_t step) {
  return key(1, kFixed64) + little_endian(now()) + integer_field(kStepField, step);
}

std::string record(const std::string& event) {
  const std::string length = little_endian(static_cast<uint64_t>(event.size()));
  return length + little_endian(masked_crc32c(length)) + event + little_endian(masked_crc32c(event));
}

// Reads a varint at `position`, which moves behind it.
std::optional<uint64_t> read_varint(std::string_view bytes, size_t& position) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && position < bytes.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[position++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

// Field `step` of an Event; 0 when it has none; nothing when it is no Event.
std::optional<int64_t> step_of(std::string_view event) {
  for (size_t position = 0; position < event.size();) {
    const auto tag = read_varint(event, position);
    if (!tag) return std::nullopt;
    const uint64_t type = *tag & 7;
    std::optional<uint64_t> value = 0;
    if (type == kVarint || type == kBytes) value = read_varint(event, position);
    if (!value) return std::nullopt;
    if (*tag >> 3 == kStepField && type == kVarint) return static_cast<int64_t>(*value);
    const uint64_t skip = type == kFixed64 ? 8 : type == kFixed32 ? 4 : type == kBytes ? *value : 0;
    if (type == 3 || type == 4 || skip > event.size() - position) return std::nullopt;
    position += skip;
  }
  return 0;
}

// Appends the whole records of `file` with steps up to `last`; its version record stays out.
void take_over(const fs::path& file, int64_t last, std::string& kept) {
  const std::string bytes = read_file(file);
  bool first = true;
  for (size_t at = 0; at + 12 <= bytes.size();) {
    uint64_t length;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    if (length > bytes.size() - at || bytes.size() - at - length < 16) return;  // cut short by a kill
    const auto step = step_of(std::string_view(bytes).substr(at + 12, length));
    if (!first && step && *step <= last) kept += bytes.substr(at, length + 16);
    first = false;
    at += length + 16;
  }
}

}  // namespace

uint32_t crc32c(const std::string& bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ 0x82f63b78u : value >> 1;
      made[i] = value;
    }
    return made;
  }();
  uint32_t crc = ~0u;
  for (const char byte : bytes) crc = table[(crc ^ static_cast<unsigned char>(byte)) & 0xff] ^ crc >> 8;
  return ~crc;
}

uint32_t masked_crc32c(const std::string& bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

EventFile::EventFile(const fs::path& folder, int64_t resume_step) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) environment_error(folder.string(), ": cannot be made: ", error.message());
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with(kPrefix)) old.push_back(entry.path());
  }
  std::sort(old.begin(), old.end());
  std::string content = record(key(1, kFixed64) + little_endian(now()) + bytes_field(3, "brain.Event:2"));
  for (const fs::path& file : old) take_over(file, resume_step, content);
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  // A name that sorts behind those before it, whatever the clock says.
  auto seconds = static_cast<int64_t>(now());
  do {
    path_ = folder / cat(kPrefix, seconds++, ".", host);
  } while (fs::exists(path_, error) || (!old.empty() && path_ < old.back()));
  write_file(path_, content);
  for (const fs::path& file : old) fs::remove(file, error);
}

void EventFile::add(const std::string& event) {
  pending_ += record(event);
}

void EventFile::scalar(const std::string& tag, int64_t step, double value) {
  const std::string one = bytes_field(1, tag) + key(2, kFixed32) + little_endian(static_cast<float>(value));
  add(event_at(step) + bytes_field(5, bytes_field(1, one)));
}

void EventFile::text(const std::string& tag, int64_t step, const std::string& markdown) {
  constexpr int64_t kString = 7;  // DT_STRING
  const std::string shape = bytes_field(2, integer_field(1, 1));
  const std::string tensor = integer_field(1, kString) + bytes_field(2, shape) + bytes_field(8, markdown);
  const std::string metadata = bytes_field(1, bytes_field(1, "text"));
  const std::string one = bytes_field(1, tag) + bytes_field(8, tensor) + bytes_field(9, metadata);
  add(event_at(step) + bytes_field(5, bytes_field(1, one)));
}

void EventFile::flush() {
  if (pending_.empty()) return;
  std::ofstream out(path_, std::ios::app | std::ios::binary);
  out << pending_;
  out.flush();
  if (!out) environment_error(path_.string(), ": cannot be written: ", std::strerror(errno));
  pending_.clear();
}

}  // namespace elf
