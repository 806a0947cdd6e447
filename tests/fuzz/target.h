// What reads foreign bytes, as functions of bytes: fed by libFuzzer (fuzzer.cpp, scripts/fuzz.sh) and, in
// every build, by replay_test.cpp with the files of corpus/NAME.
#pragma once

#include <string_view>
#include <vector>

namespace elf::fuzz {

struct Target {
  const char* name;
  // Reads the bytes. May throw Error of exit code 2, what a user's bad file ends with; anything else that it
  // throws is a fault.
  void (*read)(std::string_view bytes);
};

// Of core_targets.cpp (without torch) or torch_targets.cpp, whichever is linked.
const std::vector<Target>& targets();

// target.read(bytes). "" when it read or refused them, else what it threw instead.
std::string_view fault_of(const Target& target, std::string_view bytes);

// Ends the program: the reader accepted bytes and then broke its promise.
[[noreturn]] void broken_promise(const char* what);

}  // namespace elf::fuzz
