// CUDA graphs for Recorder, as a library of its own (libelf_cuda_graph.so): it alone needs libtorch_cuda, so
// programs that use no GPU start without it.
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>

#include "elf/tensor/replay.h"

namespace elf {
namespace {

class CudaRecording final : public Recording {
 public:
  // On the current stream, which is not the default one. Other threads may use the device meanwhile.
  CudaRecording(at::cuda::MempoolId_t pool, const std::function<at::Tensor()>& work) {
    graph_.capture_begin(pool, cudaStreamCaptureModeThreadLocal);
    try {
      output_ = work();
    } catch (...) {
      end_quietly();
      throw;
    }
    graph_.capture_end();
  }
  void replay() override { graph_.replay(); }
  at::Tensor output() const override { return output_; }

 private:
  // After a failure: the stream must not stay in capture; what else is wrong with it is known already.
  void end_quietly() noexcept {
    try {
      graph_.capture_end();
    } catch (...) {
    }
  }

  at::cuda::CUDAGraph graph_;
  at::Tensor output_;
};

// All recordings share one pool of memory, for they run one after the other and none needs what another left:
// an output is read before the next replay.
class CudaRecorder final : public Recorder {
 public:
  explicit CudaRecorder(at::Device device)
      : stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index())),
        pool_(at::cuda::graph_pool_handle()) {}

  std::unique_ptr<Recording> record(const std::function<at::Tensor()>& work) override {
    c10::cuda::getCurrentCUDAStream(stream_.device_index()).synchronize();
    const c10::cuda::CUDAStreamGuard on_side_stream(stream_);
    work();  // what the first call on a stream sets up is no part of the graph
    stream_.synchronize();
    c10::cuda::CUDACachingAllocator::emptyCache();  // the graph keeps memory of its own
    return std::make_unique<CudaRecording>(pool_, work);
  }

 private:
  c10::cuda::CUDAStream stream_;
  at::cuda::MempoolId_t pool_;
};

}  // namespace
}  // namespace elf

extern "C" void elf_make_cuda_recorder(at::Device device, std::unique_ptr<elf::Recorder>& recorder) {
  recorder = std::make_unique<elf::CudaRecorder>(device);
}
