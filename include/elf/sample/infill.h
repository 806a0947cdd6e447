// Texts with gaps filled in by a model: what is known stays, what is missing is sampled given it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "elf/sample/generate.h"
#include "elf/sample/infill_text.h"

namespace elf {

// What holds the known text while the gaps emerge. docs/SAMPLING.md has the comparison.
enum class InfillMethod {
  kPath,  // its latents, encoded once without the gaps, stand in the place of the prediction there: the state
          // keeps the noise of its time everywhere
  kReencode,  // the same, encoded again after every step together with the current guess for the gaps: for
              // encoders whose latents depend on their neighbours; one decode more a step
  kPin,       // its clean latents stand in the state from the start, as conditions do
};

// "path", "reencode", "pin"; throws Error (usage) naming `option` for anything else.
InfillMethod parse_infill_method(std::string_view name, std::string_view option);

struct InfillSettings {
  InfillMethod method = InfillMethod::kPath;
  bool eos_padding = true;           // the model learned EOS as padding (flow.pad_token)
  int64_t tries = 16;                // combinations of gap lengths looked at, at most, where lengths are free
  std::vector<int64_t> banned = {};  // ids that fill no gap of a text with an end: special and unknown ones
};

struct InfilledText {
  TokenIds ids;                 // the whole text, up to its end
  std::vector<TokenIds> fills;  // [gaps]
  double log_prob = 0;  // of all positions, as denoising_log_prob sums it; 0 where nothing had to be chosen
  int64_t tried = 1;    // combinations of lengths
};

// Every combination of lengths that `text` allows within `room` tokens, at most `tries` of them, spread
// evenly; an open end is given -1. Throws Error (usage) naming `place` when not even the shortest fits.
std::vector<std::vector<int64_t>> gap_lengths(const InfillText& text, int64_t room, int64_t tries,
                                              std::string_view place);

class Infiller {
 public:
  // As Generator. `codec` encodes the known text; not null.
  Infiller(const SamplerModel& model, LatentCodec& codec, const GeneratorShape& shape,
           const SamplingConfig& config, const InfillSettings& settings, at::Device device = at::kCPU);

  // The texts of the samples with these indices, in rows of at most `rows_at_once`. Where lengths are free,
  // all tries of a text are made from the same noise and the one that the model finds likeliest is kept.
  // conditions: one a text, or none at all.
  std::vector<InfilledText> fill(const std::vector<int64_t>& samples, const std::vector<InfillText>& texts,
                                 const std::vector<TokenIds>& conditions, int64_t rows_at_once);

  // Positions that a text may take.
  int64_t room() const { return shape_.length - shape_.max_input_length; }
  int64_t forwards() const { return forwards_; }
  int64_t rows() const { return rows_; }

 private:
  struct Row;
  struct Layout;
  Layout lay_out(const std::vector<Row>& rows) const;
  at::Tensor encode(const Layout& layout, const at::Tensor& ids, const at::Tensor& valid) const;
  at::Tensor guess(const Layout& layout, const at::Tensor& latents);
  at::Tensor sample(const Layout& layout, const std::vector<int64_t>& samples);
  std::vector<double> score(const Layout& layout, const at::Tensor& ids, const std::vector<int64_t>& samples);

  ReplayedDenoiser network_;
  SamplerModel model_;  // of network_
  LatentCodec& codec_;
  GeneratorShape shape_;
  SamplingConfig config_;
  InfillSettings settings_;
  at::Device device_;
  int64_t forwards_ = 0, rows_ = 0;
};

}  // namespace elf
