// What Ranks holds when there are others: private to dist/, because c10d's headers are heavy.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "elf/base/error.h"
#include "elf/dist/ranks.h"

#ifdef ELF_HAVE_C10D
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "failure_watch.h"

namespace elf {

struct Ranks::Impl {
  Impl(const Launch& launch, at::Device device, const std::string& job, const RankTimeouts& timeouts);

  void meet();
  void refuse_strangers(const std::string& job);
  void open_groups(at::Device device);
  // Runs `work`; a failure in it becomes an Error that says what this rank waited for and, when known, which
  // rank failed.
  template <class Work>
  auto waiting_for(const std::string& what, Work work) {
    try {
      return work();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      explain(what, error);
    }
  }
  [[noreturn]] void explain(const std::string& what, const std::exception& error);
  at::Tensor gather(const at::Tensor& mine);
  std::string place() const;  // "rank 1 of 4 on gpu07"

  Launch launch;
  RankTimeouts timeouts;
  c10::intrusive_ptr<c10d::Store> connection, store;  // store: keys of this start of the job
  c10::intrusive_ptr<c10d::Store> watched;            // a connection of the watch's own
  c10::intrusive_ptr<c10d::Backend> control;          // Gloo: host tensors
  c10::intrusive_ptr<c10d::ProcessGroup> group;       // Gloo for CPU tensors, NCCL for CUDA
  int64_t works_of_first = 0;                         // how often first_does ran
  bool gave_up = false;
  std::optional<FailureWatch> watch;
};

// The NCCL backend of libelf_nccl.so, which is loaded only when a CUDA device is used. Throws Error
// (environment) when this build has none.
c10::intrusive_ptr<c10d::Backend> make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                            std::chrono::milliseconds timeout);

}  // namespace elf
#else
namespace elf {
struct Ranks::Impl {
  Launch launch;
};
}  // namespace elf
#endif
