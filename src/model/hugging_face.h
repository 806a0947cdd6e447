// The weight files of a Hugging Face folder, whatever they are called.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "elf/tensor/safetensors.h"

namespace elf {

// The name of what the folder's weights begin with, the first of these that is there: model.safetensors,
// model.safetensors.index.json, pytorch_model.bin, pytorch_model.bin.index.json. `what` ("a GPT-2") stands in
// messages. Throws Error (usage): no folder, none of them there.
std::string hugging_face_weight_entry(const std::filesystem::path& folder, const std::string& what);

// The files that hold the weights: that entry, or the shards that it names. Throws Error (usage), also for an
// index that names anything but files beside it.
std::vector<std::filesystem::path> hugging_face_weight_files(const std::filesystem::path& folder,
                                                             const std::string& what);

// All tensors of those files: safetensors, or state dicts of torch.save (.bin).
TensorMap read_hugging_face_weights(const std::vector<std::filesystem::path>& files);

}  // namespace elf
