// Token ids of samples, from conditions in token ids: encode the conditions, walk the flow, decode, keep the
// target's part up to its end.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "elf/model/latent_codec.h"
#include "elf/sample/replayed_denoiser.h"
#include "elf/sample/sampler.h"

namespace elf {

using TokenIds = std::vector<int64_t>;

struct GeneratorShape {
  int64_t length = 0;      // L of the network
  int64_t latent_dim = 0;  // D
  int64_t max_input_length =
      0;  // longest condition; L - max_input_length positions are kept. 0: unconditional, all L are kept
  int64_t pad_id = 0;
  int64_t eos_id = 1;
};

// What one step reads as, a list per row: the prediction x_hat, at the last step the state.
struct GeneratorStep {
  int64_t index;              // 0 .. N - 1
  double t;                   // time reached
  std::vector<TokenIds> ids;  // [B], cut at the first EOS
  // [B] of those positions and, behind them, that of the EOS where there is one: probability of the token in
  // (0, 1], entropy of the distribution in nats.
  std::vector<std::vector<float>> confidence, entropy;
};
using GeneratorObserver = std::function<void(const GeneratorStep&)>;

class Generator {
 public:
  // `codec` encodes the conditions; may be null when max_input_length is 0. Network and codec outlive the
  // generator. On a CUDA device the network's calls are replayed (config.cuda_graph).
  Generator(const SamplerModel& model, LatentCodec* codec, const GeneratorShape& shape,
            const SamplingConfig& config, at::Device device = at::kCPU);

  // The ids of the samples with these indices, each cut before its first EOS. conditions: one per sample,
  // each at most max_input_length long (empty ones are fine), or none at all for unconditional samples. With
  // an observer every step is decoded as well (a network call more a step).
  std::vector<TokenIds> generate(const std::vector<int64_t>& samples,
                                 const std::vector<TokenIds>& conditions = {},
                                 const GeneratorObserver& observer = {});

  int64_t forwards() const { return forwards_; }  // network calls so far, decoding included
  int64_t rows() const { return rows_; }          // rows summed over them

 private:
  SampleConditions encode(const std::vector<TokenIds>& conditions) const;
  GeneratorStep read(const at::Tensor& latents, const std::vector<int64_t>& condition_lengths,
                     bool certainty);

  ReplayedDenoiser network_;
  SamplerModel model_;  // of network_
  LatentCodec* codec_;
  GeneratorShape shape_;
  SamplingConfig config_;
  at::Device device_;
  int64_t forwards_ = 0, rows_ = 0;
};

}  // namespace elf
