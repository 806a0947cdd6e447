// Any number of byte strings in a random order, with flat memory: they wait in a temporary file, in buckets
// by a random key, and each bucket is sorted in memory.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace elf {

// The order is that of keys, key i = random bits of (seed, i): a function of the seed and of the number of
// each string only.
class RecordShuffle {
 public:
  // The file lies in `folder` without a name (it is gone when the process is). Throws Error (environment).
  RecordShuffle(const std::filesystem::path& folder, uint64_t seed);
  ~RecordShuffle();
  RecordShuffle(const RecordShuffle&) = delete;
  RecordShuffle& operator=(const RecordShuffle&) = delete;

  void add(std::string_view bytes);
  // Every string once, in order of the keys. Afterwards nothing is left.
  void for_each(const std::function<void(std::string_view)>& use);

 private:
  // A 256th of the strings: at the top of the sorting order one bucket is in memory at a time.
  struct Bucket {
    std::string waiting;                              // not yet in the file
    std::vector<std::pair<int64_t, size_t>> written;  // place and size
  };
  void write(Bucket& bucket);
  std::string read(const Bucket& bucket) const;

  std::filesystem::path folder_;
  uint64_t seed_, count_ = 0;
  int file_ = -1;
  int64_t end_ = 0;  // of the file
  std::array<Bucket, 256> buckets_;
};

}  // namespace elf
