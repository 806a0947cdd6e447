// Whether a progress bar stands on the terminal's last line, so that a log line can wipe it first.
#pragma once

#include <atomic>

namespace elf {

inline std::atomic<bool> bar_on_screen{false};

}  // namespace elf
