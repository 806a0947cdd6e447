// Loops over rows on the threads that ATen's own operations use. at::parallel_for is compiled to a serial
// loop in programs built without -fopenmp, and a second OpenMP runtime beside LibTorch's would fight for the
// cores: so LibTorch's runtime is called directly.
#pragma once

#include <cstdint>
#include <functional>

namespace elf {

// body(begin, end) for the consecutive pieces [0, grain), [grain, 2 grain), ... of [0, count), in any order,
// perhaps at the same time. The pieces do not depend on the number of threads, so that sums by piece come out
// the same on every machine. Serial when there is one piece, one thread, or the caller already runs inside a
// parallel region. The first exception of a body is thrown again here.
void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body);

}  // namespace elf
