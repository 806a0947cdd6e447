#include "elf/nn/init.h"

#include <ATen/ATen.h>

#include <cmath>

#include "elf/tensor/random.h"

namespace elf::nn {
namespace {

constexpr double kSmallStd = 0.02;

// FNV-1a, cut to 63 bits: the sample number of a name.
int64_t sample_of(const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return static_cast<int64_t>(hash >> 1);
}

}  // namespace

void initialise(const at::Tensor& weight, Init init, uint64_t seed, const std::string& name, int64_t fan_in,
                int64_t fan_out) {
  const at::NoGradGuard no_grad;
  const Stream stream{seed, Purpose::kInit};
  switch (init) {
    case Init::kXavierUniform: {
      const double bound = std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));
      weight.copy_(
          elf::uniform(stream, {sample_of(name)}, weight.sizes()).select(0, 0).mul_(2 * bound).sub_(bound));
      break;
    }
    case Init::kSmallNormal:
      weight.copy_(elf::normal(stream, {sample_of(name)}, weight.sizes()).select(0, 0).mul_(kSmallStd));
      break;
    case Init::kZero:
      weight.zero_();
      break;
    case Init::kOne:
      weight.fill_(1.0);
      break;
  }
}

}  // namespace elf::nn
