// Memory of large tensors on the CPU, kept when a tensor dies and given to the next one of its size. A step
// asks for the same sizes over and over; from the operating system each of them would come page by page,
// zeroed, which on a CPU takes as long as a good part of the arithmetic. Blocks lie in huge pages where the
// system has them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace elf {

// From now on LibTorch's CPU tensors of a MiB and more take their memory from here. Programs call it first
// thing; a library should leave the choice to its user. Does nothing under sanitizers, and when called again.
void use_block_cache();

struct BlockCacheState {
  int64_t live = 0;       // bytes of blocks in use
  int64_t kept = 0;       // bytes of blocks that wait for use
  int64_t peak_live = 0;  // most bytes in use at once, so far
};
BlockCacheState block_cache_state();

// Of blocks themselves; at least a MiB. A block that is given back is kept as long as all blocks together
// hold no more than the largest sum ever in use, and goes back to the system otherwise: the cache never makes
// a program larger than it was at its peak.
void* take_block(size_t bytes);
void give_back_block(void* block);

}  // namespace elf
