#include "elf/tensor/parallel.h"

#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <exception>

namespace elf {
namespace {

// libgomp's entry point for `#pragma omp parallel`: a stable part of its binary interface (Intel's runtime
// offers it too).
using GompParallel = void (*)(void (*body)(void*), void* data, unsigned num_threads, unsigned flags);

GompParallel find_runtime() {
  static const auto found = reinterpret_cast<GompParallel>(::dlsym(RTLD_DEFAULT, "GOMP_parallel"));
  return found;
}

struct Work {
  const std::function<void(int64_t, int64_t)>& body;
  int64_t count, grain;
  std::atomic<int64_t> next{0};
  std::atomic_flag failed = ATOMIC_FLAG_INIT;
  std::exception_ptr error{};

  // Every thread takes the next piece until none is left.
  void run() {
    for (int64_t begin; (begin = next.fetch_add(grain)) < count;) {
      try {
        body(begin, std::min(count, begin + grain));
      } catch (...) {
        if (!failed.test_and_set()) error = std::current_exception();
      }
    }
  }
};

}  // namespace

void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  Work work{body, count, std::max<int64_t>(1, grain)};
  const bool worth_it = count > work.grain && at::get_num_threads() > 1 && !at::in_parallel_region();
  if (worth_it && find_runtime() != nullptr) {
    find_runtime()([](void* data) { static_cast<Work*>(data)->run(); }, &work, 0, 0);
  } else {
    work.run();
  }
  if (work.error) std::rethrow_exception(work.error);
}

}  // namespace elf
