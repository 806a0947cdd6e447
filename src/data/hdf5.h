// A thin, safe face of HDF5's C library: handles that close themselves, errors as Error with HDF5's innermost
// reason, one lock around every call of the process (the library need not be thread-safe), its own error
// printing off.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace elf::hdf5 {

// Held by whoever calls the functions below; recursive, since they call each other.
std::recursive_mutex& library_lock();
using Guard = std::lock_guard<std::recursive_mutex>;

// An HDF5 identifier with the function that closes it.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() { reset(); }

  void reset();
  // Closes and tells whether that worked (buffers are flushed then).
  bool close();
  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

// What HDF5 says about the failure of the last call.
std::string reason();

// Without file locks, also where HDF5_USE_FILE_LOCKING is not set. Throws Error: usage for a file that is not
// a whole HDF5 file (and says what it looks like), environment when a new one cannot be made.
Handle open_file(const std::filesystem::path& path);
Handle create_file(const std::filesystem::path& path);

// Attributes of the root group. Reading throws Error (usage) naming file and attribute when it is missing, of
// another type, or no single value.
bool has_attribute(const Handle& file, const std::string& name);
int64_t read_integer(const Handle& file, const std::string& name, const std::string& path);
std::string read_text(const Handle& file, const std::string& name, const std::string& path);
void write_attribute(const Handle& file, const std::string& name, int64_t value);
void write_attribute(const Handle& file, const std::string& name, const std::string& value);

// Everything written so far to disk. Throws Error (environment) when that fails: disk full.
void flush(const Handle& file);

// The type of an array's elements in memory and in the file.
hid_t uint8_type();
hid_t uint16_type();
hid_t uint32_type();
hid_t uint64_type();
hid_t float_type();

// A one-dimensional array that grows at its end: chunked, with checksums, and shuffled and deflated if
// packed.
class GrowingArray {
 public:
  GrowingArray(const Handle& file, const std::string& name, hid_t type, int64_t chunk, bool packed = true);
  void append(const void* data, int64_t count);  // elements of the given type
  int64_t size() const { return size_; }

 private:
  Handle array_;
  hid_t type_;
  int64_t size_ = 0;
};

// A one-dimensional array to read from.
class Array {
 public:
  // Throws Error (usage) when there is none, it is not laid out as GrowingArray lays it out, or it claims
  // more elements than its bytes in the file can hold.
  Array(const Handle& file, const std::string& name, const std::string& path);
  int64_t size() const { return size_; }
  int64_t element_bytes() const { return element_bytes_; }
  // Elements [first, first + count) as `type`. Throws Error (usage): damaged data.
  void read(int64_t first, int64_t count, hid_t type, void* data) const;

 private:
  Handle array_;
  int64_t size_ = 0, element_bytes_ = 0;
  std::string name_, path_;
};

}  // namespace elf::hdf5
