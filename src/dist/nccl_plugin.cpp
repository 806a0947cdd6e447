// NCCL for Ranks, as a library of its own (libelf_nccl.so): it alone needs libtorch_cuda, so programs that
// use no GPU start without it.
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

extern "C" void elf_make_nccl(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                              std::chrono::milliseconds timeout, c10::intrusive_ptr<c10d::Backend>& backend) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
}
