// A Recorder for the CPU that behaves as a graph does: recording computes nothing that lasts, a replay reads
// the recorded places and writes the one output.
#pragma once

#include <ATen/ATen.h>

#include <limits>
#include <memory>
#include <utility>

#include "elf/base/error.h"
#include "elf/tensor/replay.h"

namespace elf::test {

struct RecorderCalls {
  int64_t recordings = 0, replays = 0;
  bool fails = false;  // the next recordings throw
};

class CpuRecorder final : public Recorder {
 public:
  explicit CpuRecorder(RecorderCalls& calls) : calls_(calls) {}

  std::unique_ptr<Recording> record(const std::function<at::Tensor()>& work) override {
    ++calls_.recordings;
    if (calls_.fails) environment_error("cannot be recorded");
    return std::make_unique<Again>(calls_, work);
  }

 private:
  class Again final : public Recording {
   public:
    Again(RecorderCalls& calls, std::function<at::Tensor()> work)
        : calls_(calls),
          work_(std::move(work)),
          output_(at::full_like(work_(), std::numeric_limits<double>::quiet_NaN())) {}
    void replay() override {
      ++calls_.replays;
      output_.copy_(work_());
    }
    at::Tensor output() const override { return output_; }

   private:
    RecorderCalls& calls_;
    std::function<at::Tensor()> work_;
    at::Tensor output_;
  };
  RecorderCalls& calls_;
};

}  // namespace elf::test
