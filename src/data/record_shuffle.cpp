#include "record_shuffle.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "elf/base/error.h"
#include "elf/tensor/random.h"

namespace elf {
namespace fs = std::filesystem;
namespace {

constexpr size_t kBlock = size_t{1} << 17;        // bytes of a bucket before they are written
constexpr uint64_t kShuffleEpoch = ~uint64_t{0};  // of Purpose::kDataOrder: no epoch of a run has it

// A string in a bucket: key and size, then the bytes.
struct Head {
  uint64_t key, size;
};

int open_unnamed(const fs::path& folder) {
  const int file = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file >= 0) return file;
  // File systems without unnamed files: a name that is taken away at once.
  std::string name = (folder / ".shuffle.XXXXXX").string();
  const int named = ::mkstemp(name.data());
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

}  // namespace

RecordShuffle::RecordShuffle(const fs::path& folder, uint64_t seed)
    : folder_(folder.empty() ? "." : folder), seed_(seed), file_(open_unnamed(folder_)) {
  if (file_ < 0)
    environment_error(folder_.string(), ": no temporary file can be made: ", std::strerror(errno));
}

RecordShuffle::~RecordShuffle() {
  if (file_ >= 0) ::close(file_);
}

void RecordShuffle::add(std::string_view bytes) {
  const Head head{random_bits({seed_, Purpose::kDataOrder, kShuffleEpoch}, count_++), bytes.size()};
  Bucket& bucket = buckets_[head.key >> 56];
  bucket.waiting.append(reinterpret_cast<const char*>(&head), sizeof head).append(bytes);
  if (bucket.waiting.size() >= kBlock) write(bucket);
}

void RecordShuffle::write(Bucket& bucket) {
  const std::string& bytes = bucket.waiting;
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = ::pwrite(file_, bytes.data() + done, bytes.size() - done,
                                   static_cast<off_t>(end_ + static_cast<int64_t>(done)));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      environment_error(folder_.string(), ": the shuffled records cannot be written: ", std::strerror(errno));
    done += static_cast<size_t>(count);
  }
  bucket.written.emplace_back(end_, bytes.size());
  end_ += static_cast<int64_t>(bytes.size());
  bucket.waiting.clear();
}

std::string RecordShuffle::read(const Bucket& bucket) const {
  std::string all;
  for (const auto& [place, size] : bucket.written) {
    const size_t begin = all.size();
    all.resize(begin + size);
    for (size_t done = 0; done < size;) {
      const ssize_t count = ::pread(file_, all.data() + begin + done, size - done,
                                    static_cast<off_t>(place + static_cast<int64_t>(done)));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0)
        environment_error(folder_.string(),
                          ": the shuffled records cannot be read back: ", std::strerror(errno));
      done += static_cast<size_t>(count);
    }
  }
  return all + bucket.waiting;
}

void RecordShuffle::for_each(const std::function<void(std::string_view)>& use) {
  for (Bucket& bucket : buckets_) {
    const std::string all = read(bucket);
    bucket = {};
    std::vector<std::pair<uint64_t, std::string_view>> strings;
    for (size_t at = 0; at < all.size();) {
      Head head;
      std::memcpy(&head, all.data() + at, sizeof head);
      strings.emplace_back(head.key, std::string_view(all).substr(at + sizeof head, head.size));
      at += sizeof head + head.size;
    }
    // Equal keys stay in the order of reading.
    std::stable_sort(strings.begin(), strings.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [key, bytes] : strings) use(bytes);
  }
}

}  // namespace elf
