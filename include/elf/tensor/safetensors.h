// The safetensors format: an 8-byte header length, a JSON header, then the tensors' bytes.
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>

namespace elf {

using TensorMap = std::map<std::string, at::Tensor>;
using Metadata = std::map<std::string, std::string>;

// All tensors of the file, on the CPU, in the dtypes stored (F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL).
// They lie in the mapped file: nothing is read before it is used, writing to one changes memory only. The
// file must not be cut short meanwhile; replacing or deleting it (as write_safetensors does) is harmless.
// Checks header length, JSON, dtypes, that the offsets are contiguous and cover the data, shape x dtype =
// bytes. Throws Error (usage) naming file and rule; nothing is allocated from unchecked lengths.
TensorMap read_safetensors(const std::filesystem::path& path);
TensorMap read_safetensors(const std::filesystem::path& path, Metadata& metadata);

// Writes contiguous copies in name order, by AtomicFile. Throws Error (environment).
void write_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                       const Metadata& metadata = {});

}  // namespace elf
