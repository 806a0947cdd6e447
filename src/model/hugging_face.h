// The weights of a Hugging Face folder, whatever its files are called.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "elf/tensor/safetensors.h"

namespace elf {

struct HuggingFaceWeights {
  std::vector<std::filesystem::path> files;  // that hold them, in name order
  TensorMap tensors;                         // in the dtypes stored
};

// model.safetensors, else the shards of model.safetensors.index.json, else pytorch_model.bin or its shards.
// `what` ("a GPT-2") stands in messages. Throws Error (usage): no such folder, none of those files, an index
// that names other folders or a tensor that its file does not have, damaged files.
HuggingFaceWeights read_hugging_face_weights(const std::filesystem::path& folder, const std::string& what);

}  // namespace elf
