#include "elf/nn/dropout.h"

#include <ATen/ATen.h>

#include "elf/base/error.h"
#include "elf/tensor/random.h"

namespace elf::nn {

at::Tensor dropout(const at::Tensor& x, double probability, const DropoutKey& key, int64_t block,
                   DropoutSite site) {
  constexpr int64_t kPasses = 4, kBlocks = 1024, kSites = 2;
  if (static_cast<int64_t>(key.samples.size()) != x.size(0)) {
    usage_error("dropout: ", key.samples.size(), " sample numbers for a batch of ", x.size(0), " rows");
  }
  if (key.pass < 0 || key.pass >= kPasses || block >= kBlocks)
    usage_error("dropout: pass ", key.pass, " or block ", block, " is too large");
  // One number names step, pass, block and site; no two share a stream.
  const int64_t place =
      ((key.step * kPasses + key.pass) * kBlocks + block) * kSites + static_cast<int64_t>(site);
  const at::Tensor drawn =
      uniform({key.seed, Purpose::kDropout, static_cast<uint64_t>(place)}, key.samples, x.sizes().slice(1));
  const at::Tensor mask = drawn.ge(probability).to(x.device(), x.scalar_type());
  return x * mask.mul_(1.0 / (1.0 - probability));
}

}  // namespace elf::nn
