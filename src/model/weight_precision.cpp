#include "elf/model/weight_precision.h"

#include <ATen/ATen.h>

#include "elf/base/error.h"

namespace elf {
namespace {

constexpr const char* kScale = ".scale";
constexpr std::pair<WeightPrecision, const char*> kNames[] = {{WeightPrecision::kFloat32, "float32"},
                                                              {WeightPrecision::kBfloat16, "bf16"},
                                                              {WeightPrecision::kInt8, "int8"}};

bool is_matrix(const at::Tensor& tensor) {
  return tensor.dim() == 2 && tensor.size(0) >= 2 && tensor.size(1) >= 2;
}

void pack_int8(const std::string& name, const at::Tensor& weight, TensorMap& packed) {
  const at::Tensor scale = weight.abs().amax(1, /*keepdim=*/true) / 127;
  // A row of zeros has scale 0; anything but 0/0 will do for it.
  const at::Tensor steps = weight / at::where(scale > 0, scale, at::ones({}));
  packed[name] = steps.round().clamp(-127, 127).to(at::kChar);
  packed[name + kScale] = scale;
}

}  // namespace

std::string precision_name(WeightPrecision precision) {
  for (const auto& [value, name] : kNames) {
    if (value == precision) return name;
  }
  usage_error("no name for precision number ", static_cast<int>(precision));
}

WeightPrecision parse_precision(const std::string& name, const std::string& option) {
  for (const auto& [value, known] : kNames) {
    if (name == known) return value;
  }
  usage_error(option, ": found '", name, "', expected float32, bf16 or int8");
}

TensorMap pack_weights(const TensorMap& weights, WeightPrecision precision) {
  TensorMap packed;
  for (const auto& [name, tensor] : weights) {
    const at::Tensor weight = tensor.detach().to(at::kCPU, at::kFloat);
    if (precision == WeightPrecision::kInt8 && is_matrix(weight)) {
      pack_int8(name, weight, packed);
    } else {
      packed[name] = precision == WeightPrecision::kBfloat16 ? weight.to(at::kBFloat16) : weight;
    }
  }
  return packed;
}

TensorMap unpack_weights(const TensorMap& stored, const std::string& origin) {
  TensorMap weights;
  for (const auto& [name, tensor] : stored) {
    if (name.ends_with(kScale) && stored.contains(name.substr(0, name.size() - 6))) continue;
    if (tensor.scalar_type() != at::kChar) {
      if (!tensor.is_floating_point())
        usage_error(origin, ": tensor '", name, "' is ", tensor.scalar_type(), ", expected a floating dtype");
      weights[name] = tensor.to(at::kFloat);
      continue;
    }
    const auto scale = stored.find(name + kScale);
    if (scale == stored.end())
      usage_error(origin, ": tensor '", name, "' is int8, but '", name, kScale, "' is missing");
    const bool fits = tensor.dim() == 2 && scale->second.scalar_type() == at::kFloat &&
                      scale->second.sizes() == at::IntArrayRef({tensor.size(0), 1});
    if (!fits)
      usage_error(origin, ": tensor '", name, kScale, "' is no float32 column with a row for each of '", name,
                  "'");
    weights[name] = tensor.to(at::kFloat) * scale->second;
  }
  return weights;
}

}  // namespace elf
