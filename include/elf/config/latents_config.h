// `latents:` where the latents come from (docs/ALGORITHM.md section 1).
#pragma once

#include <string>

namespace elf {

// t5: frozen T5 encoder | table: frozen static table, a row a token | learned: a table that is trained, the
// network's unembedding
enum class LatentSource { kT5, kTable, kLearned };
enum class EncoderDtype { kFloat32, kBFloat16 };  // arithmetic of the T5; float16 is refused: it overflows

struct LatentsConfig {
  LatentSource source = LatentSource::kT5;
  std::string path;   // t5: a Hugging Face folder; table: what `elf-prepare table` wrote; learned: empty.
                      // Relative to the file that names it
  double mean = 0.0;  // latents = (encoder output - mean) / std
  double std = 0.2;   // 0.2 in all published configurations; tables are made, and learned ones kept, at mean
                      // 0 and std 1
  std::string statistics;  // "" or a file of `elf-prepare statistics`: per-channel mean and std in place of
                           // the two scalars
  EncoderDtype dtype = EncoderDtype::kFloat32;
  std::string cache = {};    // "" or a file of `elf-prepare latents`: encoder outputs of the training data
  std::string decoder = {};  // "" = the network reads tokens off by its own decode branch; else the run,
                             // checkpoint or model directory of a network that was trained for nothing else
  bool operator==(const LatentsConfig&) const = default;
};

// Whether a source is named: a network may be stored without its encoder.
inline bool has_latents(const LatentsConfig& config) {
  return config.source == LatentSource::kLearned || !config.path.empty();
}

}  // namespace elf
