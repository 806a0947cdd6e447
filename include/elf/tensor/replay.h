// A computation of fixed shapes that is recorded once and replayed on the same memory: on CUDA a graph, which
// the host launches as one in place of hundreds of kernels.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

namespace elf {

class Recording {
 public:
  virtual ~Recording() = default;
  // Does again what was recorded: reads the tensors that it read, writes output().
  virtual void replay() = 0;
  // Holds what the last replay gave; undefined before the first.
  virtual at::Tensor output() const = 0;
};

class Recorder {
 public:
  virtual ~Recorder() = default;
  // `work` reads tensors that stay in their places, and never waits for the device; what it captures outlives
  // the recording. May run it more than once. Throws what `work` throws, and where it cannot be recorded.
  virtual std::unique_ptr<Recording> record(const std::function<at::Tensor()>& work) = 0;
};

// CUDA graphs on `device`; null for the CPU and, with one line in the log, where libelf_cuda_graph.so is
// missing.
std::unique_ptr<Recorder> make_recorder(at::Device device);

// A function of tensors, some of which may be undefined, that is replayed where shapes come again: the first
// call with new shapes (and types, devices) is plain, the second is recorded, every one from then on is a
// replay. Other tensors that it reads must stay in their places; their values may change. Results are tensors
// of their own.
//
// Without a recorder, while gradients are enabled, and once a recording has failed (one line in the log), all
// calls are plain. Not for two threads at once.
class Replayed {
 public:
  using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;
  static constexpr size_t kMostShapes = 8;  // remembered; then the oldest is forgotten

  Replayed(Function function, std::unique_ptr<Recorder> recorder);
  at::Tensor operator()(const std::vector<at::Tensor>& inputs);

 private:
  struct Shape {
    std::vector<at::Tensor> inputs;  // the places that the recording reads
    std::unique_ptr<Recording> recording;
  };
  Shape* find(const std::vector<at::Tensor>& inputs);
  void remember(const std::vector<at::Tensor>& inputs);

  Function function_;
  std::unique_ptr<Recorder> recorder_;
  std::vector<std::unique_ptr<Shape>> shapes_;  // the oldest first; recordings end before their recorder
};

}  // namespace elf
