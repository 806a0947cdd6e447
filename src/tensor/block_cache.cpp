#include "elf/tensor/block_cache.h"

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <new>
#include <unordered_map>

#include "elf/base/sanitizers.h"

namespace elf {
namespace {

constexpr size_t kSmallest = size_t{1} << 20;  // smaller ones are malloc's, which serves them well
constexpr size_t kHugePage = size_t{1} << 21;
constexpr size_t kPage = size_t{1} << 12;

// Sizes are rounded up by at most an eighth, so that nearly equal ones can take each other's place.
size_t rounded(size_t bytes) {
  const size_t step = std::max(kPage, std::bit_floor(bytes) / 8);
  return (bytes + step - 1) / step * step;
}

// Address space that begins at a huge page; memory comes when it is touched.
void* map_block(size_t bytes) {
  const size_t whole = bytes + kHugePage;
  void* start = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  const auto first = reinterpret_cast<uintptr_t>(start);
  const uintptr_t aligned = (first + kHugePage - 1) / kHugePage * kHugePage;
  if (aligned > first) ::munmap(start, aligned - first);
  const size_t behind = first + whole - (aligned + bytes);
  if (behind > 0) ::munmap(reinterpret_cast<void*>(aligned + bytes), behind);
  void* block = reinterpret_cast<void*>(aligned);
  ::madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

class BlockCache {
 public:
  void* take(size_t wanted) {
    const size_t bytes = rounded(wanted);
    const std::lock_guard lock(mutex_);
    void* block = nullptr;
    if (const auto found = kept_.find(bytes); found != kept_.end()) {
      block = found->second;
      kept_.erase(found);
      kept_bytes_ -= bytes;
    } else {
      make_room(bytes);
      block = map_block(bytes);
    }
    sizes_[block] = bytes;
    live_ += bytes;
    peak_ = std::max(peak_, live_);
    return block;
  }

  // False: not a block of this cache.
  bool give_back(void* block) {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(block);
    if (found == sizes_.end()) return false;
    const size_t bytes = found->second;
    sizes_.erase(found);
    live_ -= bytes;
    kept_.emplace(bytes, block);
    kept_bytes_ += bytes;
    return true;
  }

  BlockCacheState state() {
    const std::lock_guard lock(mutex_);
    return {static_cast<int64_t>(live_), static_cast<int64_t>(kept_bytes_), static_cast<int64_t>(peak_)};
  }

 private:
  // Frees kept blocks, the largest first, until a new one fits under the peak or none is left.
  void make_room(size_t bytes) {
    while (!kept_.empty() && live_ + kept_bytes_ + bytes > std::max(peak_, live_ + bytes)) {
      const auto last = std::prev(kept_.end());
      ::munmap(last->second, last->first);
      kept_bytes_ -= last->first;
      kept_.erase(last);
    }
  }

  std::mutex mutex_;
  std::multimap<size_t, void*> kept_;
  std::unordered_map<void*, size_t> sizes_;  // of blocks in use
  size_t live_ = 0, kept_bytes_ = 0, peak_ = 0;
};

// Lives for ever: tensors in static objects outlive everything else.
BlockCache& cache() {
  static auto* const the_cache = new BlockCache;
  return *the_cache;
}

// Of either kind: only blocks of the cache, and few others, begin at a huge page.
void release(void* memory) {
  if (reinterpret_cast<uintptr_t>(memory) % kHugePage == 0 && cache().give_back(memory)) return;
  c10::GetDefaultCPUAllocator()->raw_deleter()(memory);
}

class CachingAllocator final : public at::Allocator {
 public:
  at::DataPtr allocate(size_t bytes) override {
    void* memory = bytes < kSmallest ? c10::GetDefaultCPUAllocator()->allocate(bytes).release_context()
                                     : cache().take(bytes);
    return {memory, memory, &release, at::Device(at::kCPU)};
  }
  // oneDNN allocates and frees without a DataPtr.
  at::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

}  // namespace

void use_block_cache() {
#ifndef ELF_SANITIZED
  static auto* const allocator = [] {
    auto* const made = new CachingAllocator;
    c10::SetCPUAllocator(made, /*priority=*/1);
    return made;
  }();
  (void)allocator;
#endif
}

BlockCacheState block_cache_state() {
  return cache().state();
}

void* take_block(size_t bytes) {
  return cache().take(bytes);
}

void give_back_block(void* block) {
  cache().give_back(block);
}

}  // namespace elf
