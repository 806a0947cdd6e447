// Faults that tests put into a run, by the environment variable ELF_FAULTS: a comma-separated list of
//   NAME@STEP[-STEP][:rank=R][:restart=N][:value=X]
// such as "nan_loss@5-7" or "kill_step@7:rank=1:restart=0". Without the variable there are none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "elf/flow/objective.h"

namespace elf {

// The value of fault `name` at `step` on this rank in this start (0 without `value=`); nothing when there is
// no such fault. The first call reads the variable; throws Error (usage) when it cannot be read.
std::optional<double> fault_at(std::string_view name, int64_t step);

// Throws an Error (environment), sleeps `value` seconds or sends the process the signal `value` (0: SIGKILL)
// when throw_<place>, sleep_<place> or kill_<place> is asked for.
void fault_point(std::string_view place, int64_t step);

// The loss with NaN in its denoise term and total.
Loss spoilt(const Loss& loss);

}  // namespace elf
