// Mixed precision as a scope: inside it matrix products and attention run in bfloat16, whatever the weights
// are stored in.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace elf {

// While it lives, autocast to bfloat16 on `device` is on for this thread; then it is as it was before, the
// casts of weights being forgotten (one made without gradients must not serve a later pass with them). Scopes
// nest, and end with exceptions. Take the backward pass outside. `enabled` false: does nothing.
class Bfloat16Scope {
 public:
  Bfloat16Scope(c10::DeviceType device, bool enabled);
  ~Bfloat16Scope();
  Bfloat16Scope(const Bfloat16Scope&) = delete;
  Bfloat16Scope& operator=(const Bfloat16Scope&) = delete;

 private:
  c10::DeviceType device_;
  bool enabled_, was_enabled_ = false;
  c10::ScalarType dtype_before_ = c10::ScalarType::BFloat16;
};

}  // namespace elf
