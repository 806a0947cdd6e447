// A function that is recorded and replayed gives what it gives by itself.
#include "elf/tensor/replay.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "elf/tensor/device.h"
#include "support/cpu_recorder.h"

namespace elf {
namespace {

using test::CpuRecorder;
using test::RecorderCalls;

// x + 2 y, or x alone.
at::Tensor sum_of(const std::vector<at::Tensor>& x) {
  return x[1].defined() ? x[0] + 2 * x[1] : x[0] + 0;
}

Replayed replayed(RecorderCalls& calls) {
  return Replayed(sum_of, std::make_unique<CpuRecorder>(calls));
}

std::vector<at::Tensor> inputs(int64_t rows, double value) {
  return {at::full({rows, 3}, value), at::full({rows, 3}, 10 * value)};
}

TEST(Replay, TheSecondCallIsRecordedAllLaterOnesAreReplayed) {
  const at::NoGradGuard no_grad;
  RecorderCalls calls;
  Replayed f = replayed(calls);
  for (int64_t i = 0; i < 5; ++i) {
    const std::vector<at::Tensor> x = inputs(2, 1.5 + static_cast<double>(i));
    EXPECT_TRUE(at::equal(f(x), sum_of(x))) << i;
    EXPECT_EQ(calls.recordings, i > 0);
    EXPECT_EQ(calls.replays, i);
  }
}

TEST(Replay, ResultsStayWhatTheyWere) {
  const at::NoGradGuard no_grad;
  RecorderCalls calls;
  Replayed f = replayed(calls);
  std::vector<at::Tensor> results;
  for (int64_t i = 0; i < 4; ++i) results.push_back(f(inputs(2, static_cast<double>(i))));
  ASSERT_EQ(calls.replays, 3);
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_TRUE(at::equal(results[static_cast<size_t>(i)], sum_of(inputs(2, static_cast<double>(i))))) << i;
  results[2].zero_();  // nor can a result that is written to spoil a later one
  EXPECT_TRUE(at::equal(f(inputs(2, 7)), sum_of(inputs(2, 7))));
}

TEST(Replay, NewShapesAreRecordedAnewAndOldOnesKept) {
  const at::NoGradGuard no_grad;
  RecorderCalls calls;
  Replayed f = replayed(calls);
  const auto twice = [&](const std::vector<at::Tensor>& x) {
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(f(x), sum_of(x)));
  };
  twice(inputs(2, 1));
  twice(inputs(3, 1));
  EXPECT_EQ(calls.recordings, 2);
  twice({at::ones({2, 3}), at::Tensor()});  // presence
  EXPECT_EQ(calls.recordings, 3);
  twice({at::ones({2, 3}, at::kDouble), at::ones({2, 3}, at::kDouble)});  // type
  EXPECT_EQ(calls.recordings, 4);
  twice(inputs(2, 5));
  twice(inputs(3, 6));
  EXPECT_EQ(calls.recordings, 4);
}

TEST(Replay, TheOldestShapeIsForgotten) {
  const at::NoGradGuard no_grad;
  RecorderCalls calls;
  Replayed f = replayed(calls);
  const auto most = static_cast<int64_t>(Replayed::kMostShapes);
  for (int64_t rows = 1; rows <= most + 1; ++rows) {
    for (int i = 0; i < 2; ++i) f(inputs(rows, 1));
  }
  EXPECT_EQ(calls.recordings, most + 1);
  f(inputs(most + 1, 1)), f(inputs(2, 1));
  EXPECT_EQ(calls.recordings, most + 1);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(f(inputs(1, 4)), sum_of(inputs(1, 4))));
  EXPECT_EQ(calls.recordings, most + 2);
}

TEST(Replay, WhatCannotBeRecordedIsCalledPlainly) {
  const at::NoGradGuard no_grad;
  RecorderCalls calls{.fails = true};
  Replayed f = replayed(calls);
  for (int64_t i = 0; i < 4; ++i) {
    const std::vector<at::Tensor> x = inputs(2, static_cast<double>(i));
    EXPECT_TRUE(at::equal(f(x), sum_of(x))) << i;
  }
  EXPECT_EQ(calls.recordings, 1);  // it is not tried again and again
  EXPECT_EQ(calls.replays, 0);
}

TEST(Replay, GradientsAreNotLost) {
  RecorderCalls calls;
  Replayed f = replayed(calls);
  for (int i = 0; i < 3; ++i) {
    const at::Tensor x = at::ones({2, 3}).requires_grad_(), y = at::ones({2, 3}).requires_grad_();
    f({x, y}).sum().backward();
    EXPECT_TRUE(at::equal(y.grad(), at::full({2, 3}, 2.0)));
  }
  EXPECT_EQ(calls.recordings, 0);
}

TEST(Replay, TheCpuHasNoRecorder) {
  EXPECT_EQ(make_recorder(at::kCPU), nullptr);
}

TEST(Replay, ACudaGraphGivesWhatPlainCallsGive) {
  const at::Device device = parse_device("auto");
  if (!device.is_cuda()) GTEST_SKIP() << "no CUDA device";
  const at::NoGradGuard no_grad;
  Replayed f(sum_of, make_recorder(device));
  std::unique_ptr<Recorder> recorder = make_recorder(device);
  ASSERT_NE(recorder, nullptr);
  for (const int64_t rows : {2, 3, 2}) {
    for (int64_t i = 0; i < 4; ++i) {
      std::vector<at::Tensor> x = inputs(rows, static_cast<double>(i));
      const at::Tensor expected = sum_of(x);
      for (at::Tensor& one : x) one = one.to(device);
      EXPECT_TRUE(at::equal(f(x).cpu(), expected)) << rows << " " << i;
    }
  }
  // What waits for the device cannot be recorded; the stream is of use afterwards.
  const at::Tensor one = at::ones({1}, device);
  EXPECT_THROW(recorder->record([&] { return one + one.item<float>(); }), std::exception);
  EXPECT_EQ((one + one).item<float>(), 2.0f);
}

}  // namespace
}  // namespace elf
