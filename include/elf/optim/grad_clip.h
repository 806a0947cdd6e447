// Gradient clipping by the global norm.
#pragma once

#include "elf/optim/parameters.h"

namespace elf {

// Scales all gradients by min(1, max_norm / (norm + 1e-6)), in place; max_norm <= 0 only measures. Returns
// the norm before clipping (scalar f32 tensor, on the gradients' device: reading it is the caller's choice).
// A norm that is not finite leaves the gradients as they are.
at::Tensor clip_gradients(const ParamList& params, double max_norm);

}  // namespace elf
