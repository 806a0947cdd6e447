// How weights are stored. They compute in float32 in any case: a smaller form is unpacked on loading.
#pragma once

#include <string>

#include "elf/tensor/safetensors.h"

namespace elf {

enum class WeightPrecision { kFloat32, kBfloat16, kInt8 };

// "float32", "bf16" or "int8". Parsing throws Error (usage) naming `option` and the choices.
std::string precision_name(WeightPrecision precision);
WeightPrecision parse_precision(const std::string& name, const std::string& option);

// float32: as given. bf16: every tensor rounded to bfloat16. int8: each matrix [m, n] with m, n >= 2 becomes
// NAME int8 and NAME.scale float32 [m, 1], the row's largest magnitude / 127, with NAME ~ int8 * scale: off
// by half a scale at most; all other tensors stay float32.
TensorMap pack_weights(const TensorMap& weights, WeightPrecision precision);

// The inverse, to float32, of any of the three. Throws Error (usage) naming `origin` and the tensor: int8
// without its scale, a scale of another shape.
TensorMap unpack_weights(const TensorMap& stored, const std::string& origin);

}  // namespace elf
