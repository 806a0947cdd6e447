// Names inside the HDF5 dataset, shared by reader and writer. The layout is told in elf/data/dataset.h.
#pragma once

#include <utility>
#include <vector>

#include "elf/data/dataset.h"

namespace elf::format {

inline constexpr const char* kName = "elf-dataset";
inline constexpr int64_t kVersion = 1;
inline constexpr const char* kTokens = "tokens";
inline constexpr const char* kOffsets = "offsets";
inline constexpr const char* kCondLengths = "cond_lengths";
inline constexpr const char* kSourceText = "source_text";
inline constexpr const char* kSourceTextOffsets = "source_text_offsets";
inline constexpr const char* kTargetText = "target_text";
inline constexpr const char* kTargetTextOffsets = "target_text_offsets";

// Attributes that are fields of DatasetInfo.
inline std::vector<std::pair<const char*, int64_t DatasetInfo::*>> integer_fields() {
  using D = DatasetInfo;
  return {{"rows", &D::rows},
          {"tokens", &D::tokens},
          {"vocab_size", &D::vocab_size},
          {"pad_id", &D::pad_id},
          {"eos_id", &D::eos_id},
          {"unk_id", &D::unk_id},
          {"max_length", &D::max_length},
          {"max_input_length", &D::max_input_length},
          {"longest_row", &D::longest_row},
          {"longest_condition", &D::longest_condition}};
}
inline std::vector<std::pair<const char*, std::string DatasetInfo::*>> text_fields() {
  using D = DatasetInfo;
  return {{"tokenizer_hash", &D::tokenizer_hash}, {"data_hash", &D::data_hash}, {"settings", &D::settings}};
}

}  // namespace elf::format
