// Random numbers as a pure function of their name: (seed, purpose, step, sample, position). No state, no
// order of calls, hence the same numbers for every batch split, rank count and resume. Philox4x32-10 (Salmon
// et al., 2011) under the hood; the global generator is never touched.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace elf {

// What the numbers are for; each purpose has streams of its own. Append only: the values are part of every
// result.
enum class Purpose : uint32_t {
  kInit = 1,           // weights
  kTime = 2,           // t
  kNoise = 3,          // eps of the denoise branch
  kBranch = 4,         // denoise or decode
  kDecodeLevel = 5,    // p per token
  kDecodeNoise = 6,    // eps of the decode branch
  kSelfCond = 7,       // coin of self-conditioning
  kSelfCondScale = 8,  // w
  kLabelDrop = 9,      // condition dropped
  kDataOrder = 10,     // order of an epoch
  kDropout = 11,
  kSampleNoise = 12,     // z at t = 0
  kSampleGrid = 13,      // times of the sampler
  kSampleStep = 14,      // noise of an SDE step
  kTable = 15,           // Gaussian token tables
  kSpanCorruption = 16,  // encoder pretraining
  kTeacherTimes = 20,    // distillation: where the teacher's steps end
  kDecodeMask = 21,      // tokens of which the decode branch sees noise only
};

struct Stream {
  uint64_t seed;
  Purpose purpose;
  uint64_t step = 0;  // optimiser step, sampler step, epoch, ...
};

// [B, shape...] float32 on the CPU: row b depends on (stream, samples[b], position in the row) only. Standard
// normal / uniform in [0, 1).
at::Tensor normal(const Stream& stream, const std::vector<int64_t>& samples, at::IntArrayRef shape);
at::Tensor uniform(const Stream& stream, const std::vector<int64_t>& samples, at::IntArrayRef shape);

// One number in [0, 2^64): number `position` of sample `sample`.
uint64_t random_bits(const Stream& stream, uint64_t sample, uint64_t position = 0);

// `count` sample numbers from `first`.
std::vector<int64_t> sample_range(int64_t first, int64_t count);

}  // namespace elf
