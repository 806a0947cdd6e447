// `data:` the datasets that elf-prepare wrote, and the tokenizer they were made with.
#pragma once

#include <cstdint>
#include <string>

namespace elf {

struct DataConfig {
  std::string train;             // HDF5 dataset; relative to the file that names it, like all paths here
  std::string valid;             // "" = no validation
  std::string tokenizer;         // SentencePiece model; its hash must equal the datasets'
  int64_t max_length = 0;        // 0 = the dataset's
  int64_t max_input_length = 0;  // longest condition of pairs; 0 = the dataset's (documents have none)

  bool operator==(const DataConfig&) const = default;
};

}  // namespace elf
