#include "elf/tensor/block_cache.h"

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace elf {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(BlockCache, ABlockServesTheNextOfItsSize) {
  void* first = take_block(3 * kMiB);
  std::memset(first, 1, 3 * kMiB);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % (2 * kMiB), 0u);
  give_back_block(first);
  void* second = take_block(3 * kMiB - 100);  // nearly equal sizes are one
  EXPECT_EQ(second, first);
  void* third = take_block(3 * kMiB);
  EXPECT_NE(third, second);
  give_back_block(second);
  give_back_block(third);
}

TEST(BlockCache, HoldsNoMoreThanWasInUseAtOnce) {
  const int64_t before = block_cache_state().live;
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(take_block(4 * kMiB));
  for (void* block : blocks) give_back_block(block);
  const BlockCacheState after = block_cache_state();
  EXPECT_EQ(after.live, before);
  EXPECT_GE(after.kept, 32 * static_cast<int64_t>(kMiB));
  void* large = take_block(24 * kMiB);  // no kept block is large enough: some go, so that the sum stays
  const BlockCacheState now = block_cache_state();
  EXPECT_LE(now.live + now.kept, now.peak_live);
  EXPECT_LT(now.kept, after.kept);
  give_back_block(large);
}

// As oneDNN does it; small memory comes from malloc, large memory from the cache.
TEST(BlockCache, MemoryIsFreedWithoutItsDataPtr) {
  use_block_cache();
  at::Allocator& allocator = *c10::GetCPUAllocator();
  const int64_t before = block_cache_state().live;
  for (const size_t bytes : {size_t{0}, size_t{100}, 3 * kMiB}) {
    void* memory = allocator.raw_allocate(bytes);
    if (bytes > 0) std::memset(memory, 1, bytes);
    allocator.raw_deallocate(memory);
  }
  EXPECT_EQ(block_cache_state().live, before);
}

TEST(BlockCache, ThreadsShareIt) {
  const int64_t before = block_cache_state().live;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 50; ++i) {
        const size_t size = (1 + (t + i) % 3) * kMiB;
        auto* block = static_cast<unsigned char*>(take_block(size));
        block[0] = block[size - 1] = static_cast<unsigned char>(t);
        EXPECT_EQ(block[0], t);
        EXPECT_EQ(block[size - 1], t);
        give_back_block(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(block_cache_state().live, before);
}

}  // namespace
}  // namespace elf
