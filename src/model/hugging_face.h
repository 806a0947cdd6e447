// The weight files of a Hugging Face folder, whatever they are called.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "elf/tensor/safetensors.h"

namespace elf {

// The files that hold the weights: model.safetensors; or the shards that model.safetensors.index.json names;
// or pytorch_model.bin. `what` ("a GPT-2") stands in messages. Throws Error (usage): none of them there.
std::vector<std::filesystem::path> hugging_face_weight_files(const std::filesystem::path& folder,
                                                             const std::string& what);

// All tensors of those files.
TensorMap read_hugging_face_weights(const std::vector<std::filesystem::path>& files);

}  // namespace elf
