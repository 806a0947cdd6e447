// `latents:` where the latents come from (docs/ALGORITHM.md section 1).
#pragma once

#include <string>

namespace elf {

enum class LatentSource { kT5, kTable };  // t5: frozen T5 encoder | table: frozen static table, a row a token
enum class EncoderDtype { kFloat32, kBFloat16 };  // arithmetic of the T5; float16 is refused: it overflows

struct LatentsConfig {
  LatentSource source = LatentSource::kT5;
  std::string path;  // t5: a Hugging Face folder; table: what `elf-prepare table` wrote. Relative to the file
                     // that names it
  double mean = 0.0;       // latents = (encoder output - mean) / std
  double std = 0.2;        // 0.2 in all published configurations; tables are made with mean 0 and std 1
  std::string statistics;  // "" or a file of `elf-prepare statistics`: per-channel mean and std in place of
                           // the two scalars
  EncoderDtype dtype = EncoderDtype::kFloat32;
  std::string cache = {};  // "" or a file of `elf-prepare latents`: encoder outputs of the training data
  bool operator==(const LatentsConfig&) const = default;
};

}  // namespace elf
